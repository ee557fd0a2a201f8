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
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "box/netslot.h"
#include "box/netwatch.h"
#include "policy/net_table.h"
#include "sys/clone.h"
#include "warden/options.h"
#include "warden/record.h"
#include "warden/tables.h"
#include "warden/warden.h"

struct police {
	uint16_t dns_port, http_port; /* that every new box has */
	struct tables *tables;	      /* NULL: networks cannot be policed */
	char missing[320];
};

static void come_back(const struct warden *w)
{
	if (setns(w->own_net_fd, CLONE_NEWNET) < 0)
		abort();
}

struct police *police_new(const struct warden *w, const struct options *o)
{
	struct net_table_options table = {
		.dns_port = NET_TABLE_DNS_PORT,
		.http_port = NET_TABLE_HTTP,
		.names_only = o->names_only,
		.drop = o->drop_silently,
	};
	struct police *p = mem_new(struct police);
	struct err e = ERR_NONE;
	int r;

	p->dns_port = table.dns_port;
	p->http_port = table.http_port;
	/* Without a way out there is nothing to police, and why is known. */
	if (!netslots_nat(w->nets))
		return p;
	r = o->policing ? tables_new(&table, w->own_net_fd, &p->tables, &e)
			: err_set(&e, -ENOENT, "opensandbox-egress is not there, or cannot run");
	if (r < 0)
		snprintf(p->missing, sizeof(p->missing), "networks cannot be policed: %s", e.msg);
	return p;
}

void police_free(struct police *p)
{
	if (!p)
		return;
	tables_free(p->tables);
	free(p);
}

bool police_possible(const struct police *p)
{
	return p->tables != NULL;
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
		.sort = tables_sort(p->tables),
	};

	return record_write_ports(box_fd, &ports, e);
}

static int prepare_inside(const struct police *p, struct netwatch *n, struct err *e)
{
	int r = netwatch_open(n, e);

	if (r == 0 && (n->dns_port != p->dns_port || n->http_port != p->http_port))
		r = err_set(e, -EADDRINUSE, "a new namespace has its ports taken");
	return r < 0 ? r : tables_load(p->tables, TABLES_NEW, n, e);
}

int police_prepare(struct warden *w, struct box *b, int box_fd, int netns_fd, struct err *e)
{
	const struct police *p = w->police;
	int r;

	b->policed = true;
	b->netwatch = watch_new(p->dns_port, p->http_port);
	b->table_sort = tables_sort(p->tables);
	if (setns(netns_fd, CLONE_NEWNET) < 0)
		return err_set(e, -errno, "enter the sandbox's namespace: %m");
	r = prepare_inside(p, b->netwatch, e);
	come_back(w);
	if (r == 0)
		r = record(p, b->netwatch, box_fd, e);
	hide(b->netwatch);
	return r;
}

void police_adopt(struct box *b, const struct record_ports *ports)
{
	b->policed = true;
	b->netwatch = watch_new(ports->dns, ports->http);
	b->table_sort = ports->sort;
}

/* Inside: the sockets, and a table if there is none that fits them. */
static int open_inside(const struct police *p, struct box *b, bool *ret_new, struct err *e)
{
	struct netwatch *n = b->netwatch;
	uint16_t dns = n->dns_port, http = n->http_port;
	int r = netwatch_open(n, e);

	if (r < 0)
		return r;
	*ret_new = !b->policed || n->dns_port != dns || n->http_port != http ||
		   b->table_sort != tables_sort(p->tables);
	if (!*ret_new)
		return 0;
	/* One that is connected stays so. */
	return tables_load(p->tables, b->policed ? TABLES_REPLACE : TABLES_OPEN, n, e);
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
	const struct police *p = w->police;
	struct netwatch before;
	int r;

	if (!p->tables)
		return police_refuse(p, e);
	if (!b->netwatch)
		b->netwatch = watch_new(p->dns_port, p->http_port);
	if (b->netwatch->fds[0] >= 0)
		return 0;
	before = *b->netwatch;
	r = open_and_record(w, b, e);
	if (r < 0) {
		/* The next one to ask begins where we did, and with a table that fits. */
		netwatch_close(b->netwatch);
		*b->netwatch = before;
		b->table_sort = 0;
		return r;
	}
	hide(b->netwatch);
	b->table_sort = tables_sort(p->tables);
	b->policed = true;
	return 0;
}

void police_forget(struct box *b)
{
	if (b->netwatch)
		netwatch_close(b->netwatch);
	free(take_ptr(b->netwatch));
}
