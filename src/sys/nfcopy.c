/*
 * sys/nfcopy.c - the kernel lists a table in nearly the same messages that make one.
 *
 * What it adds for those who look (handles, counts of users) is left out.  Rules come last: sets
 * that were written into one must be filled before it uses them, which it does by the name that
 * they got.
 */
#include "sys/nfcopy.h"

#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "sys/nfbatch.h"

#define ANSWER_BYTES (64u << 10)
#define SETS_MAX     64

#define KEEP(type) (1u << (type))

/* A sort of things: how to ask for them, and what of the answer makes another one. */
struct sort {
	const char *name;
	unsigned ask, make, flags;
	unsigned table; /* the attribute with the table's name */
	uint32_t keep;
};

static const struct sort sets = {
	"sets",
	NFT_MSG_GETSET,
	NFT_MSG_NEWSET,
	NLM_F_CREATE,
	NFTA_SET_TABLE,
	KEEP(NFTA_SET_TABLE) | KEEP(NFTA_SET_NAME) | KEEP(NFTA_SET_FLAGS) |
		KEEP(NFTA_SET_KEY_TYPE) | KEEP(NFTA_SET_KEY_LEN) | KEEP(NFTA_SET_DATA_TYPE) |
		KEEP(NFTA_SET_DATA_LEN) | KEEP(NFTA_SET_POLICY) | KEEP(NFTA_SET_DESC) |
		KEEP(NFTA_SET_TIMEOUT) | KEEP(NFTA_SET_GC_INTERVAL) | KEEP(NFTA_SET_USERDATA),
};

static const struct sort elements = {
	"elements",
	NFT_MSG_GETSETELEM,
	NFT_MSG_NEWSETELEM,
	NLM_F_CREATE,
	NFTA_SET_ELEM_LIST_TABLE,
	KEEP(NFTA_SET_ELEM_LIST_TABLE) | KEEP(NFTA_SET_ELEM_LIST_SET) |
		KEEP(NFTA_SET_ELEM_LIST_ELEMENTS),
};

static const struct sort chains = {
	"chains",
	NFT_MSG_GETCHAIN,
	NFT_MSG_NEWCHAIN,
	NLM_F_CREATE,
	NFTA_CHAIN_TABLE,
	KEEP(NFTA_CHAIN_TABLE) | KEEP(NFTA_CHAIN_NAME) | KEEP(NFTA_CHAIN_HOOK) |
		KEEP(NFTA_CHAIN_POLICY) | KEEP(NFTA_CHAIN_TYPE) | KEEP(NFTA_CHAIN_USERDATA),
};

static const struct sort rules = {
	"rules",
	NFT_MSG_GETRULE,
	NFT_MSG_NEWRULE,
	NLM_F_CREATE | NLM_F_APPEND,
	NFTA_RULE_TABLE,
	KEEP(NFTA_RULE_TABLE) | KEEP(NFTA_RULE_CHAIN) | KEEP(NFTA_RULE_EXPRESSIONS) |
		KEEP(NFTA_RULE_USERDATA),
};

struct copy {
	int fd;
	const char *table;
	struct nfbatch *out;
	char sets[SETS_MAX][NFT_NAME_MAXLEN];
	size_t sets_n;
};

struct attribute {
	unsigned type;
	const char *value;
	size_t size;
};

/* Cuts the next attribute off; false at the end, or where something is not right. */
static bool next_attribute(const char **p, size_t *left, struct attribute *ret)
{
	struct nlattr a;
	size_t whole;

	if (*left < NLA_HDRLEN)
		return false;
	memcpy(&a, *p, sizeof(a));
	if (a.nla_len < NLA_HDRLEN || a.nla_len > *left)
		return false;
	/* The flag for nested ones is kept: it is part of how they are written. */
	ret->type = a.nla_type;
	ret->value = *p + NLA_HDRLEN;
	ret->size = a.nla_len - NLA_HDRLEN;
	whole = NLA_ALIGN(a.nla_len);
	whole = whole < *left ? whole : *left;
	*p += whole;
	*left -= whole;
	return true;
}

static bool is_text(const struct attribute *a, const char *text)
{
	return a->size == strlen(text) + 1 && memcmp(a->value, text, a->size) == 0;
}

static int note_set(struct copy *c, const struct attribute *name, struct err *e)
{
	if (c->sets_n == SETS_MAX || name->size == 0 || name->size > sizeof(c->sets[0]) ||
	    name->value[name->size - 1] != '\0')
		return err_set(e, -E2BIG, "copy a table: more than %d sets", SETS_MAX);
	memcpy(c->sets[c->sets_n++], name->value, name->size);
	return 0;
}

/* One message of the list becomes one of ours. */
static int copy_message(struct copy *c, const struct sort *s, const struct nlmsghdr *h,
			struct err *e)
{
	const char *p = (const char *)h + NLMSG_HDRLEN + sizeof(struct nfgenmsg), *again = p;
	size_t left = h->nlmsg_len - NLMSG_HDRLEN - sizeof(struct nfgenmsg), begun,
	       again_left = left;
	struct attribute a;
	int r = 0;

	/* Of another table? */
	while (next_attribute(&again, &again_left, &a))
		if ((a.type & NLA_TYPE_MASK) == s->table && !is_text(&a, c->table))
			return 0;
	begun = nfbatch_begin(c->out, s->make, s->flags);
	while (r == 0 && next_attribute(&p, &left, &a)) {
		unsigned type = a.type & NLA_TYPE_MASK;

		if (type >= 32 || !(s->keep & KEEP(type)))
			continue;
		nfbatch_put(c->out, a.type, a.value, a.size);
		if (s == &sets && type == NFTA_SET_NAME)
			r = note_set(c, &a, e);
	}
	if (s == &sets)
		nfbatch_put_u32(c->out, NFTA_SET_ID, (uint32_t)c->sets_n);
	nfbatch_end(c->out, begun);
	return r;
}

static int ask(struct copy *c, const struct sort *s, const char *set, struct err *e)
{
	struct nfbatch question;
	struct view bytes;
	size_t begun;
	int r = 0;

	/* Not a transaction: what begins one is left out. */
	nfbatch_init(&question, 1024);
	buf_clear(&question.bytes);
	begun = nfbatch_begin(&question, s->ask, NLM_F_DUMP);
	nfbatch_put_text(&question, s->table, c->table);
	if (set)
		nfbatch_put_text(&question, NFTA_SET_ELEM_LIST_SET, set);
	nfbatch_end(&question, begun);
	bytes = buf_view(&question.bytes);
	if (question.failed < 0 || send(c->fd, bytes.p, bytes.len, 0) < 0)
		r = err_set(e, question.failed < 0 ? question.failed : -errno, "list %s: %m",
			    s->name);
	nfbatch_done(&question);
	return r;
}

/* 1: the list is complete. */
static int take_messages(struct copy *c, const struct sort *s, char *p, size_t size, struct err *e)
{
	struct nlmsghdr *h = (struct nlmsghdr *)p;
	int r = 0;

	for (; r == 0 && NLMSG_OK(h, size); h = NLMSG_NEXT(h, size)) {
		if (h->nlmsg_type == NLMSG_DONE)
			return 1;
		if (h->nlmsg_type == NLMSG_ERROR)
			return err_set(e, ((struct nlmsgerr *)NLMSG_DATA(h))->error, "list %s",
				       s->name);
		if (h->nlmsg_type == (NFNL_SUBSYS_NFTABLES << 8 | s->make) &&
		    h->nlmsg_len >= NLMSG_HDRLEN + sizeof(struct nfgenmsg))
			r = copy_message(c, s, h, e);
	}
	return r;
}

static int copy_all(struct copy *c, const struct sort *s, const char *set, struct err *e)
{
	_Alignas(8) static char answer[ANSWER_BYTES];
	int r = ask(c, s, set, e);

	while (r == 0) {
		/* The kernel has begun to answer before send() returned. */
		ssize_t n = recv(c->fd, answer, sizeof(answer), MSG_DONTWAIT | MSG_TRUNC);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || (size_t)n > sizeof(answer))
			return err_set(e, n < 0 ? -errno : -EMSGSIZE, "list %s: cut short",
				       s->name);
		r = take_messages(c, s, answer, (size_t)n, e);
	}
	return r < 0 ? r : 0;
}

static void put_table(struct nfbatch *b, unsigned type, unsigned flags, const char *name)
{
	size_t begun = nfbatch_begin(b, type, flags);

	nfbatch_put_text(b, NFTA_TABLE_NAME, name);
	nfbatch_end(b, begun);
}

int nfcopy_take(int fd, const char *table, enum nfcopy_for what_for, struct nfbatch *ret,
		struct err *e)
{
	struct copy c = {.fd = fd, .table = table, .out = ret};
	int r;

	/* Declared, so that deleting it cannot fail. */
	if (what_for == NFCOPY_REPLACE) {
		put_table(ret, NFT_MSG_NEWTABLE, NLM_F_CREATE, table);
		put_table(ret, NFT_MSG_DELTABLE, 0, table);
	}
	put_table(ret, NFT_MSG_NEWTABLE, NLM_F_CREATE, table);
	r = copy_all(&c, &chains, NULL, e);
	if (r == 0)
		r = copy_all(&c, &sets, NULL, e);
	for (size_t i = 0; r == 0 && i < c.sets_n; i++)
		r = copy_all(&c, &elements, c.sets[i], e);
	if (r == 0)
		r = copy_all(&c, &rules, NULL, e);
	return r;
}
