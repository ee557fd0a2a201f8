/*
 * warden/police.c - tables and sockets of policed boxes.
 *
 * A table that is in place is never loaded again as long as its ports can be had: what its sets
 * hold would be lost.  When they cannot (the sandbox took one while nobody had it), the new table
 * is closed like the first one, and connections that were admitted live on.
 */
#include "warden/police.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/netslot.h"
#include "box/netwatch.h"
#include "codec/sha256.h"
#include "policy/net_table.h"
#include "sys/clone.h"
#include "sys/nfbatch.h"
#include "sys/nfcopy.h"
#include "sys/nfset.h"
#include "warden/options.h"
#include "warden/record.h"
#include "warden/warden.h"

/* Running nft for each new box would be most of what making it costs. */
#define COPY_MAX_BYTES (64u << 10)

struct police {
	struct net_table_options options; /* with the ports that every new box has */
	struct buf table;
	uint32_t sort; /* tables of one sort are the same but for their ports */
	struct nfbatch closed,
		opened; /* the same as the kernel wants it, without and with `open` */
	bool copied;	/* else nft has to do it */
	bool possible;
	char missing[320];
};

static void come_back(const struct warden *w)
{
	if (setns(w->own_net_fd, CLONE_NEWNET) < 0)
		abort();
}

static int write_table(const struct net_table_options *o, struct buf *out, struct err *e)
{
	return net_table_write(o, out) < 0 ? err_set(e, -E2BIG, "the table is too long") : 0;
}

/* Where we are: what nft has loaded. */
static int take_copy(struct nfbatch *ret, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	int r = nfbatch_open(&fd, e);

	return r < 0 ? r : nfcopy_take(fd, NET_TABLE, ret, e);
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

/* In a namespace of its own a copy of the copy says as much again.  Elements come in any order. */
static int check_copy(struct police *p, struct err *e)
{
	osb_cleanup(nfbatch_done) struct nfbatch again = {0};
	osb_cleanup(fd_closep) int fd = -1;
	size_t len = p->closed.bytes.len;
	int r;

	nfbatch_init(&again, COPY_MAX_BYTES);
	if (unshare(CLONE_NEWNET) < 0)
		return err_set(e, -errno, "make a network namespace: %m");
	r = nfbatch_open(&fd, e);
	if (r == 0)
		r = nfbatch_commit(fd, &p->closed, "copy a table", e);
	if (r == 0)
		r = take_copy(&again, e);
	if (r == 0 && again.bytes.len != len)
		r = err_set(e, -EIO, "a copy of a table is not the same");
	if (r == 0)
		r = admit_all(fd, e);
	return r < 0 ? r : take_copy(&p->opened, e);
}

/* The operator may change his mind, and a later version may have other rules. */
static uint32_t sort_of(struct view table)
{
	unsigned char digest[SHA256_BYTES];
	uint32_t sort;

	sha256_of(table, digest);
	memcpy(&sort, digest, sizeof(sort));
	return sort;
}

static int try_table(const struct warden *w, struct police *p, struct err *e)
{
	struct err why = ERR_NONE;
	struct netwatch trial;
	int r = write_table(&p->options, &p->table, e);

	if (r < 0)
		return r;
	p->sort = sort_of(buf_view(&p->table));
	netwatch_init(&trial);
	if (unshare(CLONE_NEWNET) < 0)
		return err_set(e, -errno, "make a network namespace: %m");
	r = netwatch_open(&trial, e);
	if (r == 0)
		r = netwatch_load(buf_view(&p->table), e);
	netwatch_close(&trial);
	p->copied = r == 0 && take_copy(&p->closed, &why) == 0 && check_copy(p, &why) == 0;
	come_back(w);
	if (r == 0 && !p->copied)
		log_line(LOG_WARN, "policed sandboxes are made slowly: nft loads each table",
			 LOG_S("err", why.msg));
	return r;
}

struct police *police_new(const struct warden *w, const struct options *o)
{
	struct police *p = mem_new(struct police);
	struct err e = ERR_NONE;

	p->options = (struct net_table_options){
		.dns_port = NET_TABLE_DNS_PORT,
		.http_port = NET_TABLE_HTTP,
		.names_only = o->names_only,
		.drop = o->drop_silently,
	};
	buf_init(&p->table, NET_TABLE_MAX_BYTES);
	nfbatch_init(&p->closed, COPY_MAX_BYTES);
	nfbatch_init(&p->opened, COPY_MAX_BYTES);
	/* Without a way out there is nothing to police, and why is known. */
	if (!netslots_nat(w->nets))
		return p;
	if (o->policing)
		p->possible = try_table(w, p, &e) == 0;
	else
		err_set(&e, -ENOENT, "opensandbox-egress is not there");
	if (!p->possible)
		snprintf(p->missing, sizeof(p->missing), "networks cannot be policed: %s", e.msg);
	return p;
}

void police_free(struct police *p)
{
	if (!p)
		return;
	buf_done(&p->table);
	nfbatch_done(&p->closed);
	nfbatch_done(&p->opened);
	free(p);
}

bool police_possible(const struct police *p)
{
	return p->possible;
}

const char *police_missing(const struct police *p)
{
	return p->missing;
}

int police_refuse(const struct police *p, struct err *e)
{
	return err_set(e, -EOPNOTSUPP, "%s",
		       p->missing[0] ? p->missing
				     : "networks cannot be policed: sandboxes have none here");
}

static struct netwatch *watch_new(uint16_t dns_port, uint16_t http_port)
{
	struct netwatch *n = mem_new(struct netwatch);

	netwatch_init(n);
	n->dns_port = dns_port;
	n->http_port = http_port;
	return n;
}

/* Out of the sight of clones. */
static void hide(struct netwatch *n)
{
	for (size_t i = 0; i < ARRAY_LEN(n->fds); i++)
		n->fds[i] = clone_hide_fd(n->fds[i]);
}

static int record(const struct police *p, const struct netwatch *n, int box_fd, struct err *e)
{
	struct record_ports ports = {
		.dns = n->dns_port,
		.http = n->http_port,
		.sort = p->sort,
	};

	return record_write_ports(box_fd, &ports, e);
}

static int prepare_inside(struct police *p, struct netwatch *n, struct err *e)
{
	int r = netwatch_open(n, e);

	if (r < 0)
		return r;
	if (n->dns_port != p->options.dns_port || n->http_port != p->options.http_port)
		return err_set(e, -EADDRINUSE, "a new namespace has its ports taken");
	if (p->copied)
		return nfbatch_commit(n->fds[WARDEN_NETWATCH_SETS], &p->closed, "close the network",
				      e);
	return netwatch_load(buf_view(&p->table), e);
}

int police_prepare(struct warden *w, struct box *b, int box_fd, int netns_fd, struct err *e)
{
	const struct net_table_options *o = &w->police->options;
	int r;

	b->policed = true;
	b->netwatch = watch_new(o->dns_port, o->http_port);
	b->table_sort = w->police->sort;
	if (setns(netns_fd, CLONE_NEWNET) < 0)
		return err_set(e, -errno, "enter the sandbox's namespace: %m");
	r = prepare_inside(w->police, b->netwatch, e);
	come_back(w);
	if (r == 0)
		r = record(w->police, b->netwatch, box_fd, e);
	hide(b->netwatch);
	return r;
}

void police_adopt(struct box *b, const struct record_ports *ports)
{
	b->policed = true;
	b->netwatch = watch_new(ports->dns, ports->http);
	b->table_sort = ports->sort;
}

/* A table that is in the way has to be replaced, which is nft's business. */
static bool load_open(struct police *p, const struct netwatch *n)
{
	struct err e = ERR_NONE;

	return p->copied && n->dns_port == p->options.dns_port &&
	       n->http_port == p->options.http_port &&
	       nfbatch_commit(n->fds[WARDEN_NETWATCH_SETS], &p->opened, "open the network", &e) ==
		       0;
}

/* Inside: the sockets, and a table if there is none that fits them. */
static int open_inside(struct police *p, struct box *b, bool *ret_new, struct err *e)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(NET_TABLE_MAX_BYTES);
	struct net_table_options o = p->options;
	struct netwatch *n = b->netwatch;
	uint16_t dns = n->dns_port, http = n->http_port;
	int r = netwatch_open(n, e);

	if (r < 0)
		return r;
	*ret_new = !b->policed || n->dns_port != dns || n->http_port != http ||
		   b->table_sort != p->sort;
	if (!*ret_new || (!b->policed && load_open(p, n)))
		return 0;
	o.dns_port = n->dns_port;
	o.http_port = n->http_port;
	o.open = !b->policed; /* it is connected, and stays so */
	r = write_table(&o, &text, e);
	return r < 0 ? r : netwatch_load(buf_view(&text), e);
}

static int open_and_record(struct warden *w, struct box *b, struct err *e)
{
	osb_cleanup(fd_closep) int box_fd = -1;
	bool fresh = false;
	int r;

	box_fd = openat(w->boxes_fd, b->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (box_fd < 0)
		return err_set(e, -errno, "open boxes/%s: %m", b->name);
	if (setns(b->pidfd, CLONE_NEWNET) < 0)
		return err_set(e, -errno, "enter the sandbox's namespace: %m");
	r = open_inside(w->police, b, &fresh, e);
	come_back(w);
	return r == 0 && fresh ? record(w->police, b->netwatch, box_fd, e) : r;
}

int police_open(struct warden *w, struct box *b, struct err *e)
{
	const struct net_table_options *o = &w->police->options;
	struct netwatch before;
	int r;

	if (!w->police->possible)
		return police_refuse(w->police, e);
	if (!b->netwatch)
		b->netwatch = watch_new(o->dns_port, o->http_port);
	if (b->netwatch->fds[0] >= 0)
		return 0;
	before = *b->netwatch;
	r = open_and_record(w, b, e);
	if (r < 0) {
		/* The next one to ask begins where we did. */
		netwatch_close(b->netwatch);
		*b->netwatch = before;
		return r;
	}
	hide(b->netwatch);
	b->table_sort = w->police->sort;
	b->policed = true;
	return 0;
}

void police_forget(struct box *b)
{
	if (b->netwatch)
		netwatch_close(b->netwatch);
	free(take_ptr(b->netwatch));
}
