/*
 * sys/nfset.c - nfnetlink messages that add and delete set elements, built in one buffer.
 *
 * A batch is a begin message, the changes and an end message, sent at once.  Only the last change
 * asks for an answer; failures are answered anyway.  All answers are there when send() returns.
 */
#include "sys/nfset.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"

/* An attribute's length has 16 bits; an interval needs less than a hundred bytes. */
#define ELEMENTS_PER_MESSAGE 512

#define SEND_BYTES (2 * (int)NFSET_BATCH_MAX_BYTES)

struct nfset_batch {
	char table[32];
	struct buf bytes;
	uint32_t seq;
	size_t last; /* where the last change begins; 0: there is none */
	int failed;
};

int nfset_open(int *ret, struct err *e)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_NETFILTER);
	int bytes = SEND_BYTES;

	if (fd < 0)
		return err_set(e, -errno, "open nfnetlink: %m");
	/* A limit, not a reservation; without the right to raise it small batches still pass. */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes));
	*ret = fd;
	return 0;
}

/* `n` zeroed bytes, aligned; NULL once something did not fit. */
static void *append(struct nfset_batch *b, size_t n)
{
	size_t size = NLMSG_ALIGN(n);
	char *p = b->failed < 0 ? NULL : buf_reserve(&b->bytes, size);

	if (!p) {
		b->failed = -E2BIG;
		return NULL;
	}
	memset(p, 0, size);
	buf_commit(&b->bytes, size);
	return p;
}

static void *at(const struct nfset_batch *b, size_t offset)
{
	return b->bytes.mem + b->bytes.start + offset;
}

/* Begins a message; its length is known at its end. */
static size_t begin(struct nfset_batch *b, unsigned type, unsigned flags, unsigned family,
		    unsigned res_id)
{
	size_t offset = b->bytes.len;
	struct nlmsghdr *h = append(b, sizeof(*h) + sizeof(struct nfgenmsg));
	struct nfgenmsg *g;

	if (!h)
		return offset;
	h->nlmsg_type = (uint16_t)type;
	h->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	h->nlmsg_seq = ++b->seq;
	g = NLMSG_DATA(h);
	g->nfgen_family = (uint8_t)family;
	g->res_id = htons((uint16_t)res_id);
	return offset;
}

static void end(struct nfset_batch *b, size_t offset)
{
	if (b->failed == 0)
		((struct nlmsghdr *)at(b, offset))->nlmsg_len = (uint32_t)(b->bytes.len - offset);
}

static void put(struct nfset_batch *b, unsigned type, const void *value, size_t size)
{
	struct nlattr *a = append(b, NLA_HDRLEN + size);

	if (!a)
		return;
	a->nla_type = (uint16_t)type;
	a->nla_len = (uint16_t)(NLA_HDRLEN + size);
	memcpy((char *)a + NLA_HDRLEN, value, size);
}

static size_t nest(struct nfset_batch *b, unsigned type)
{
	size_t offset = b->bytes.len;
	struct nlattr *a = append(b, NLA_HDRLEN);

	if (a)
		a->nla_type = (uint16_t)(type | NLA_F_NESTED);
	return offset;
}

static void unnest(struct nfset_batch *b, size_t offset)
{
	if (b->failed == 0)
		((struct nlattr *)at(b, offset))->nla_len = (uint16_t)(b->bytes.len - offset);
}

/* A change of one of the two sets called `set`. */
static size_t begin_change(struct nfset_batch *b, unsigned type, unsigned flags, const char *set,
			   bool v6)
{
	size_t offset = begin(b, NFNL_SUBSYS_NFTABLES << 8 | type, flags, NFPROTO_INET, 0);
	char name[NFT_NAME_MAXLEN];
	int n = snprintf(name, sizeof(name), "%s%c", set, v6 ? '6' : '4');

	b->last = offset;
	put(b, NFTA_SET_ELEM_LIST_TABLE, b->table, strlen(b->table) + 1);
	put(b, NFTA_SET_ELEM_LIST_SET, name, (size_t)n + 1);
	return offset;
}

static void put_element(struct nfset_batch *b, const uint8_t *key, size_t size, uint32_t flags,
			uint32_t timeout_s)
{
	size_t element = nest(b, NFTA_LIST_ELEM), key_nest;

	if (flags) {
		flags = htonl(flags);
		put(b, NFTA_SET_ELEM_FLAGS, &flags, sizeof(flags));
	}
	if (timeout_s) {
		uint64_t ms = (uint64_t)timeout_s * 1000;
		uint32_t halves[2] = {htonl((uint32_t)(ms >> 32)), htonl((uint32_t)ms)};

		put(b, NFTA_SET_ELEM_TIMEOUT, halves, sizeof(halves));
	}
	key_nest = nest(b, NFTA_SET_ELEM_KEY);
	put(b, NFTA_DATA_VALUE, key, size);
	unnest(b, key_nest);
	unnest(b, element);
}

/* The address behind it; false: there is none. */
static bool next_address(const uint8_t *of, size_t size, uint8_t *ret)
{
	memcpy(ret, of, size);
	for (size_t i = size; i-- > 0;)
		if (++ret[i] != 0)
			return true;
	return false;
}

/* The kernel keeps an interval as its first address and the first one behind it. */
static void put_one(struct nfset_batch *b, const struct nfset_element *v)
{
	size_t size = v->v6 ? 16 : 4;
	uint8_t behind[16];

	put_element(b, v->first, size, 0, v->timeout_s);
	if (!v->single && next_address(v->last, size, behind))
		put_element(b, behind, size, NFT_SET_ELEM_INTERVAL_END, 0);
}

static void change_family(struct nfset_batch *b, unsigned type, const char *set, bool v6,
			  const struct nfset_element *v, size_t n)
{
	size_t message = 0, list = 0, in_message = 0;

	for (size_t i = 0; i < n; i++) {
		if (v[i].v6 != v6)
			continue;
		if (in_message == 0) {
			message = begin_change(
				b, type, type == NFT_MSG_NEWSETELEM ? NLM_F_CREATE : 0, set, v6);
			list = nest(b, NFTA_SET_ELEM_LIST_ELEMENTS);
		}
		put_one(b, &v[i]);
		if (++in_message == ELEMENTS_PER_MESSAGE) {
			unnest(b, list);
			end(b, message);
			in_message = 0;
		}
	}
	if (in_message > 0) {
		unnest(b, list);
		end(b, message);
	}
}

static void change(struct nfset_batch *b, unsigned type, const char *set,
		   const struct nfset_element *v, size_t n)
{
	change_family(b, type, set, false, v, n);
	change_family(b, type, set, true, v, n);
}

struct nfset_batch *nfset_batch_new(const char *table)
{
	struct nfset_batch *b = mem_new(struct nfset_batch);

	snprintf(b->table, sizeof(b->table), "%s", table);
	buf_init(&b->bytes, NFSET_BATCH_MAX_BYTES);
	end(b, begin(b, NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES));
	return b;
}

void nfset_batch_free(struct nfset_batch *b)
{
	if (!b)
		return;
	buf_done(&b->bytes);
	free(b);
}

void nfset_flush(struct nfset_batch *b, const char *set)
{
	/* A deletion that names no elements means all. */
	end(b, begin_change(b, NFT_MSG_DELSETELEM, 0, set, false));
	end(b, begin_change(b, NFT_MSG_DELSETELEM, 0, set, true));
}

void nfset_add(struct nfset_batch *b, const char *set, const struct nfset_element *v, size_t n)
{
	change(b, NFT_MSG_NEWSETELEM, set, v, n);
}

/* Deleting what is not there would fail: it is added first, which is nothing where it is there. */
void nfset_remove(struct nfset_batch *b, const char *set, const struct nfset_element *v, size_t n)
{
	change(b, NFT_MSG_NEWSETELEM, set, v, n);
	change(b, NFT_MSG_DELSETELEM, set, v, n);
}

/* Not every kernel lets the time of an element begin anew; within a transaction nobody sees that it
 * was away. */
void nfset_renew(struct nfset_batch *b, const char *set, const struct nfset_element *v, size_t n)
{
	nfset_remove(b, set, v, n);
	nfset_add(b, set, v, n);
}

/* Reads all answers: the first failure, if any, and whether the message `seq` was answered. */
static int read_answers(int fd, uint32_t seq, bool *ret_answered)
{
	_Alignas(8) char answer[8192];
	bool answered = false;
	int code = 0;

	for (;;) {
		struct nlmsghdr *h = (struct nlmsghdr *)answer;
		ssize_t n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
		size_t left;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0 && code == 0)
			code = -errno; /* more failures than there is room for, say */
		if (n <= 0)
			break;
		left = (size_t)n;
		for (; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
			const struct nlmsgerr *said = NLMSG_DATA(h);

			if (h->nlmsg_type != NLMSG_ERROR)
				continue;
			answered |= h->nlmsg_seq == seq;
			if (said->error < 0 && code == 0)
				code = said->error;
		}
	}
	*ret_answered = answered;
	return code;
}

int nfset_commit(int fd, struct nfset_batch *b, struct err *e)
{
	struct view bytes;
	struct nlmsghdr *h;
	bool answered;
	int r;

	if (b->failed == 0 && b->last == 0)
		return 0;
	end(b, begin(b, NFNL_MSG_BATCH_END, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES));
	if (b->failed < 0)
		return err_set(e, b->failed, "more set elements than one transaction takes");
	h = at(b, b->last);
	h->nlmsg_flags |= NLM_F_ACK;
	/* An earlier owner of the socket may have left answers. */
	(void)read_answers(fd, 0, &answered);
	bytes = buf_view(&b->bytes);
	if (send(fd, bytes.p, bytes.len, 0) < 0)
		return err_set(e, -errno, "nfnetlink: %m");
	r = read_answers(fd, h->nlmsg_seq, &answered);
	if (r == 0 && !answered)
		r = -EIO;
	return r < 0 ? err_set(e, r, "change the sets of table %s: %s", b->table, strerror(-r)) : 0;
}
