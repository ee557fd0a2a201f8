/*
 * sys/nfset.c - elements of sets as attributes.
 */
#include "sys/nfset.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sys/nfbatch.h"

/* An attribute's length has 16 bits; an interval needs less than a hundred bytes. */
#define ELEMENTS_PER_MESSAGE 512

struct nfset_batch {
	char table[32];
	struct nfbatch changes;
};

int nfset_open(int *ret, struct err *e)
{
	return nfbatch_open(ret, e);
}

/* A change of one of the two sets called `set`. */
static size_t begin_change(struct nfset_batch *b, unsigned type, const char *set, bool v6)
{
	size_t begun =
		nfbatch_begin(&b->changes, type, type == NFT_MSG_NEWSETELEM ? NLM_F_CREATE : 0);
	char name[NFT_NAME_MAXLEN];

	snprintf(name, sizeof(name), "%s%c", set, v6 ? '6' : '4');
	nfbatch_put_text(&b->changes, NFTA_SET_ELEM_LIST_TABLE, b->table);
	nfbatch_put_text(&b->changes, NFTA_SET_ELEM_LIST_SET, name);
	return begun;
}

static void put_element(struct nfbatch *c, const uint8_t *key, size_t size, uint32_t flags,
			uint32_t timeout_s)
{
	size_t element = nfbatch_nest(c, NFTA_LIST_ELEM), key_nest;

	if (flags)
		nfbatch_put_u32(c, NFTA_SET_ELEM_FLAGS, flags);
	if (timeout_s) {
		uint64_t ms = (uint64_t)timeout_s * 1000;
		uint32_t halves[2] = {htonl((uint32_t)(ms >> 32)), htonl((uint32_t)ms)};

		nfbatch_put(c, NFTA_SET_ELEM_TIMEOUT, halves, sizeof(halves));
	}
	key_nest = nfbatch_nest(c, NFTA_SET_ELEM_KEY);
	nfbatch_put(c, NFTA_DATA_VALUE, key, size);
	nfbatch_unnest(c, key_nest);
	nfbatch_unnest(c, element);
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
static void put_one(struct nfbatch *c, const struct nfset_element *v)
{
	size_t size = v->v6 ? 16 : 4;
	uint8_t behind[16];

	put_element(c, v->first, size, 0, v->timeout_s);
	if (!v->single && next_address(v->last, size, behind))
		put_element(c, behind, size, NFT_SET_ELEM_INTERVAL_END, 0);
}

static void change_family(struct nfset_batch *b, unsigned type, const char *set, bool v6,
			  const struct nfset_element *v, size_t n)
{
	size_t message = 0, list = 0, in_message = 0;

	for (size_t i = 0; i < n; i++) {
		if (v[i].v6 != v6)
			continue;
		if (in_message == 0) {
			message = begin_change(b, type, set, v6);
			list = nfbatch_nest(&b->changes, NFTA_SET_ELEM_LIST_ELEMENTS);
		}
		put_one(&b->changes, &v[i]);
		if (++in_message == ELEMENTS_PER_MESSAGE) {
			nfbatch_unnest(&b->changes, list);
			nfbatch_end(&b->changes, message);
			in_message = 0;
		}
	}
	if (in_message > 0) {
		nfbatch_unnest(&b->changes, list);
		nfbatch_end(&b->changes, message);
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
	nfbatch_init(&b->changes, NFSET_BATCH_MAX_BYTES);
	return b;
}

void nfset_batch_free(struct nfset_batch *b)
{
	if (!b)
		return;
	nfbatch_done(&b->changes);
	free(b);
}

void nfset_flush(struct nfset_batch *b, const char *set)
{
	/* A deletion that names no elements means all. */
	nfbatch_end(&b->changes, begin_change(b, NFT_MSG_DELSETELEM, set, false));
	nfbatch_end(&b->changes, begin_change(b, NFT_MSG_DELSETELEM, set, true));
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

int nfset_commit(int fd, struct nfset_batch *b, struct err *e)
{
	return nfbatch_commit(fd, &b->changes, "change sets", e);
}
