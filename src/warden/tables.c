/*
 * warden/tables.c - copies of what nft has made, and nft itself where there is no copy that fits.
 */
#include "warden/tables.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/netwatch.h"
#include "codec/sha256.h"
#include "policy/net_table.h"
#include "sys/nfbatch.h"
#include "sys/nfcopy.h"
#include "sys/nfset.h"

#define COPY_MAX_BYTES (64u << 10)
#define COPIES	       (TABLES_OPEN + 1)

struct tables {
	struct net_table_options options;
	uint32_t sort;
	struct nfbatch copies[COPIES]; /* by what they are for; with the first ports */
	bool copied;
};

static int write_table(const struct net_table_options *o, struct buf *out, struct err *e)
{
	return net_table_write(o, out) < 0 ? err_set(e, -E2BIG, "the table is too long") : 0;
}

static uint32_t sort_of(struct view table)
{
	unsigned char digest[SHA256_BYTES];
	uint32_t sort;

	sha256_of(table, digest);
	memcpy(&sort, digest, sizeof(sort));
	return sort;
}

static int admit_all(int fd, struct err *e)
{
	osb_cleanup(nfset_batch_freep) struct nfset_batch *b = nfset_batch_new(NET_TABLE);
	struct nfset_element all[] = {{.v6 = false}, {.v6 = true}};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		memset(all[i].last, 0xff, sizeof(all[i].last));
	nfset_add(b, NET_SET_ALL, all, ARRAY_LEN(all));
	return nfset_commit(fd, b, e);
}

/* Where we are: what nft has loaded, as it is and opened. */
static int take_copies(struct tables *t, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	int r = nfbatch_open(&fd, e);

	if (r == 0)
		r = nfcopy_take(fd, NET_TABLE, NFCOPY_FRESH, &t->copies[TABLES_NEW], e);
	if (r == 0)
		r = nfcopy_take(fd, NET_TABLE, NFCOPY_REPLACE, &t->copies[TABLES_REPLACE], e);
	if (r == 0)
		r = admit_all(fd, e);
	if (r == 0)
		r = nfcopy_take(fd, NET_TABLE, NFCOPY_REPLACE, &t->copies[TABLES_OPEN], e);
	return r;
}

/* In another namespace a copy of the copy says as much again.  Elements come in any order. */
static int check_copies(struct tables *t, struct err *e)
{
	osb_cleanup(nfbatch_done) struct nfbatch again = {0};
	struct nfbatch *first = &t->copies[TABLES_NEW];
	osb_cleanup(fd_closep) int fd = -1;
	size_t len = first->bytes.len;
	int r;

	nfbatch_init(&again, COPY_MAX_BYTES);
	if (unshare(CLONE_NEWNET) < 0)
		return err_set(e, -errno, "make a network namespace: %m");
	r = nfbatch_open(&fd, e);
	if (r == 0)
		r = nfbatch_commit(fd, first, "copy a table", e);
	if (r == 0)
		r = nfcopy_take(fd, NET_TABLE, NFCOPY_FRESH, &again, e);
	if (r == 0 && again.bytes.len != len)
		r = err_set(e, -EIO, "a copy of a table is not the same");
	return r;
}

/* Goes away from our namespace, and does not come back. */
static int try_out(struct tables *t, struct err *e)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(NET_TABLE_MAX_BYTES);
	struct err why = ERR_NONE;
	struct netwatch trial;
	int r = write_table(&t->options, &text, e);

	if (r < 0)
		return r;
	t->sort = sort_of(buf_view(&text));
	if (unshare(CLONE_NEWNET) < 0)
		return err_set(e, -errno, "make a network namespace: %m");
	netwatch_init(&trial);
	r = netwatch_open(&trial, e);
	netwatch_close(&trial);
	if (r == 0)
		r = netwatch_load(buf_view(&text), e);
	t->copied = r == 0 && take_copies(t, &why) == 0 && check_copies(t, &why) == 0;
	if (r == 0 && !t->copied)
		log_line(LOG_WARN, "policed sandboxes are made slowly: nft loads each table",
			 LOG_S("err", why.msg));
	return r;
}

int tables_new(const struct net_table_options *options, int own_net_fd, struct tables **ret,
	       struct err *e)
{
	struct tables *t = mem_new(struct tables);
	int r;

	t->options = *options;
	for (size_t i = 0; i < COPIES; i++)
		nfbatch_init(&t->copies[i], COPY_MAX_BYTES);
	r = try_out(t, e);
	if (setns(own_net_fd, CLONE_NEWNET) < 0)
		abort();
	if (r < 0)
		tables_free(t);
	else
		*ret = t;
	return r;
}

void tables_free(struct tables *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < COPIES; i++)
		nfbatch_done(&t->copies[i]);
	free(t);
}

uint32_t tables_sort(const struct tables *t)
{
	return t->sort;
}

int tables_load(struct tables *t, enum tables_for what_for, const struct netwatch *n, struct err *e)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(NET_TABLE_MAX_BYTES);
	struct net_table_options o = t->options;
	int r;

	if (t->copied && n->dns_port == o.dns_port && n->http_port == o.http_port)
		return nfbatch_commit(n->fds[WARDEN_NETWATCH_SETS], &t->copies[what_for],
				      "load the network's table", e);
	o.dns_port = n->dns_port;
	o.http_port = n->http_port;
	o.open = what_for == TABLES_OPEN;
	r = write_table(&o, &text, e);
	return r < 0 ? r : netwatch_load(buf_view(&text), e);
}
