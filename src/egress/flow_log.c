/*
 * egress/flow_log.c - first packets of flows, as the kernel's rules log them, become decisions.
 */
#include "egress/flow_log.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/ip_packet.h"
#include "egress/box.h"
#include "egress/decisions.h"
#include "egress/leases.h"
#include "net/loop.h"
#include "policy/net_table.h"
#include "sys/nflog.h"

#define COPY_BYTES	  128u
#define MESSAGES_PER_TURN 8

struct flow_log {
	struct box *box;
	struct loop_fd *watch;
};

static const char *protocol_name(unsigned protocol)
{
	switch (protocol) {
	case IPPROTO_TCP:
		return "tcp";
	case IPPROTO_UDP:
		return "udp";
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return "icmp";
	default:
		return "ip";
	}
}

/* Which rule was it?  The kernel says only what became of it. */
static void explain(const struct box *b, const struct ip_packet *f, bool admitted,
		    struct decision *d)
{
	bool allowed = box_allows_address(b, f->v6, f->to, &d->rule);

	d->name = leases_name(b, f->v6, f->to);
	if (admitted) {
		if (d->name && !(d->rule && allowed))
			(void)box_allows_name(b, d->name, &d->rule);
		return;
	}
	if (f->port == 853)
		d->why = "dns over tls";
	else if (f->v6 && f->port == 53)
		d->why = "dns over ipv6";
	else if (allowed && f->port == 443)
		d->why = "dns over https";
	else if (d->name && !(d->rule && !allowed))
		(void)box_allows_name(b, d->name, &d->rule);
	if (d->why)
		d->rule = NULL;
}

static bool forgiven(const struct box *b, const struct decision *d)
{
	return box_is_lenient(b) && !(d->rule && d->rule->always && !d->rule->allow);
}

/* The kernel tells its links which groups it listens to; no program has asked for that. */
static bool is_housekeeping(const struct nflog_packet *p, const struct ip_packet *f)
{
	return f->v6 && f->to[0] == 0xff && p->uid < 0;
}

static void take(void *arg, const struct nflog_packet *p)
{
	struct box *b = ((struct flow_log *)arg)->box;
	struct decision d = {.kind = DECISION_FLOW, .has_address = true, .pid = -1};
	struct ip_packet f;

	if (!ip_packet_read(p->payload, &f) || is_housekeeping(p, &f))
		return;
	d.allowed = view_is(p->prefix, "a");
	d.v6 = f.v6;
	memcpy(d.address, f.to, sizeof(d.address));
	d.port = f.port;
	d.protocol = protocol_name(f.protocol);
	d.uid = p->uid;
	explain(b, &f, d.allowed, &d);
	d.passed = !d.allowed && forgiven(b, &d);
	decisions_note(b, &d);
}

static void readable(void *arg, int fd, unsigned events)
{
	struct flow_log *f = arg;

	(void)events;
	for (int i = 0; i < MESSAGES_PER_TURN; i++) {
		int r = nflog_read(fd, take, f);

		if (r < 0) {
			log_line(LOG_ERROR, "the kernel's log of a sandbox has ended",
				 LOG_S("box", f->box->id), LOG_I("code", r));
			loop_fd_want(f->watch, 0);
		}
		if (r <= 0)
			return;
	}
}

int flow_log_new(struct box *b, struct flow_log **ret, struct err *e)
{
	struct flow_log *f = mem_new(struct flow_log);
	int r = nflog_bind(b->fds[RUNTIME_NET_LOG], NET_TABLE_LOG, COPY_BYTES, e);

	f->box = b;
	if (r == 0)
		r = loop_fd_new(b->egress->loop, b->fds[RUNTIME_NET_LOG], readable, f, &f->watch,
				e);
	if (r < 0) {
		free(f);
		return r;
	}
	loop_fd_want(f->watch, LOOP_READ);
	*ret = f;
	return 0;
}

void flow_log_free(struct flow_log *f)
{
	if (!f)
		return;
	loop_fd_free(f->watch);
	free(f);
}
