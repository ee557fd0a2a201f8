/*
 * sys/nfbatch.c - nfnetlink messages, built in place.
 *
 * A batch is a begin message, the changes and an end message.  Only the last change asks for an
 * answer; failures are answered anyway.  All answers are there when send() returns.
 */
#include "sys/nfbatch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"

/* A limit, not a reservation. */
#define SEND_BYTES (16 << 20)

int nfbatch_open(int *ret, struct err *e)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_NETFILTER);
	int bytes = SEND_BYTES;

	if (fd < 0)
		return err_set(e, -errno, "open nfnetlink: %m");
	/* Without the right to raise it small batches still pass. */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes));
	*ret = fd;
	return 0;
}

/* `n` zeroed bytes, aligned; NULL once something did not fit. */
static void *append(struct nfbatch *b, size_t n)
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

static void *at(const struct nfbatch *b, size_t offset)
{
	return b->bytes.mem + b->bytes.start + offset;
}

/* Begins a message; its length is known at its end. */
static size_t begin(struct nfbatch *b, unsigned type, unsigned flags, unsigned family,
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

void nfbatch_init(struct nfbatch *b, size_t max_bytes)
{
	memset(b, 0, sizeof(*b));
	buf_init(&b->bytes, max_bytes);
	nfbatch_end(b, begin(b, NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES));
}

void nfbatch_done(struct nfbatch *b)
{
	buf_done(&b->bytes);
}

size_t nfbatch_begin(struct nfbatch *b, unsigned type, unsigned flags)
{
	b->last = begin(b, NFNL_SUBSYS_NFTABLES << 8 | type, flags, NFPROTO_INET, 0);
	return b->last;
}

void nfbatch_end(struct nfbatch *b, size_t begun)
{
	if (b->failed == 0)
		((struct nlmsghdr *)at(b, begun))->nlmsg_len = (uint32_t)(b->bytes.len - begun);
}

void nfbatch_put(struct nfbatch *b, unsigned type, const void *value, size_t size)
{
	struct nlattr *a = append(b, NLA_HDRLEN + size);

	if (!a)
		return;
	a->nla_type = (uint16_t)type;
	a->nla_len = (uint16_t)(NLA_HDRLEN + size);
	memcpy((char *)a + NLA_HDRLEN, value, size);
}

void nfbatch_put_text(struct nfbatch *b, unsigned type, const char *text)
{
	nfbatch_put(b, type, text, strlen(text) + 1);
}

void nfbatch_put_u32(struct nfbatch *b, unsigned type, uint32_t value)
{
	value = htonl(value);
	nfbatch_put(b, type, &value, sizeof(value));
}

size_t nfbatch_nest(struct nfbatch *b, unsigned type)
{
	size_t offset = b->bytes.len;
	struct nlattr *a = append(b, NLA_HDRLEN);

	if (a)
		a->nla_type = (uint16_t)(type | NLA_F_NESTED);
	return offset;
}

void nfbatch_unnest(struct nfbatch *b, size_t nested)
{
	if (b->failed == 0)
		((struct nlattr *)at(b, nested))->nla_len = (uint16_t)(b->bytes.len - nested);
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

static void finish(struct nfbatch *b)
{
	if (b->finished || b->failed < 0)
		return;
	nfbatch_end(b, begin(b, NFNL_MSG_BATCH_END, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES));
	if (b->failed == 0)
		((struct nlmsghdr *)at(b, b->last))->nlmsg_flags |= NLM_F_ACK;
	b->finished = true;
}

int nfbatch_commit(int fd, struct nfbatch *b, const char *what, struct err *e)
{
	struct view bytes;
	bool answered;
	int r;

	if (b->failed == 0 && b->last == 0)
		return 0;
	finish(b);
	if (b->failed < 0)
		return err_set(e, b->failed, "%s: more than one transaction takes", what);
	/* An earlier owner of the socket may have left answers. */
	(void)read_answers(fd, 0, &answered);
	bytes = buf_view(&b->bytes);
	if (send(fd, bytes.p, bytes.len, 0) < 0)
		return err_set(e, -errno, "%s: nfnetlink: %m", what);
	r = read_answers(fd, ((struct nlmsghdr *)at(b, b->last))->nlmsg_seq, &answered);
	if (r == 0 && !answered)
		r = -EIO;
	return r < 0 ? err_set(e, r, "%s: %s", what, strerror(-r)) : 0;
}
