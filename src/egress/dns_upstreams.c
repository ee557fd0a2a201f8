/*
 * egress/dns_upstreams.c - which servers there are, and how they do.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "egress/dns_upstreams_int.h"
#include "egress/egress.h"
#include "egress/read_file.h"
#include "egress/settings.h"
#include "net/loop.h"

#define MISSES_MAX    2 /* in a row, and a server is not well */
#define SILENCE_US    5000000
#define LOOK_AGAIN_US 5000000
#define FALLBACK      "8.8.8.8"
#define RESOLV_CONF   "/etc/resolv.conf"
#define RESOLV_MAX    65536

/* ---- how they do ---- */

bool upstream_is_well(const struct upstream *s)
{
	return s->misses < MISSES_MAX;
}

static void say(const struct upstream *s, const char *what)
{
	char text[INET6_ADDRSTRLEN] = "";

	inet_ntop(s->address.v6 ? AF_INET6 : AF_INET, s->address.bytes, text, sizeof(text));
	log_line(LOG_WARN, what, LOG_S("server", text), LOG_I("port", s->address.port));
}

void upstream_missed(struct upstream *s)
{
	s->misses++;
	if (s->misses == MISSES_MAX)
		say(s, "a name server does not answer, asking others first");
}

void upstream_silent(struct upstream *s, uint64_t now)
{
	if (s->answered_us + SILENCE_US < now)
		upstream_missed(s);
}

void upstream_answered(struct upstream *s, uint64_t now)
{
	if (!upstream_is_well(s))
		say(s, "a name server answers again");
	s->misses = 0;
	s->answered_us = now;
}

/* ---- probes ---- */

static void on_probed(struct dns_exchange *x, const struct dns_reply *reply, struct view kept,
		      const struct err *e)
{
	struct upstream *s = x->arg;

	(void)reply;
	(void)kept;
	/* Whatever it says, it is there. */
	if (e)
		upstream_missed(s);
	else
		upstream_answered(s, loop_now_us(x->egress->loop));
}

static void probe_all(void *arg)
{
	struct dns_upstreams *u = arg;

	for (size_t i = 0; i < u->n; i++) {
		struct upstream *s = &u->v[i];
		struct err e = ERR_NONE;

		if (dns_exchange_active(&s->probe)) {
			dns_exchange_stop(&s->probe);
			upstream_missed(s);
		}
		if (dns_exchange_start(&s->probe, &e) < 0)
			upstream_missed(s);
	}
}

static void begin_probes(struct dns_upstreams *u)
{
	/* One server is asked however it does. */
	if (u->holders > 0 && u->n > 1)
		loop_timer_repeat(u->probes,
				  u->egress->settings->dns_upstream_probe_interval_sec * 1000ull);
	else
		loop_timer_stop(u->probes);
}

void dns_upstreams_hold(struct dns_upstreams *u)
{
	if (u->holders++ == 0)
		begin_probes(u);
}

void dns_upstreams_release(struct dns_upstreams *u)
{
	if (--u->holders > 0)
		return;
	loop_timer_stop(u->probes);
	for (size_t i = 0; i < u->n; i++)
		dns_exchange_stop(&u->v[i].probe);
}

/* "" is the root, whose servers everybody knows. */
static int make_probe(const char *name, struct dns_asker *ret, struct err *e)
{
	struct view rest = view_of(name), label;
	size_t at = 0;

	*ret = (struct dns_asker){.udp_size = DNS_UDP_MIN, .recursion_desired = true};
	while (view_split(&rest, '.', &label)) {
		if (label.len == 0 && rest.len == 0)
			break;
		if (label.len == 0 || label.len > 63 || at + label.len + 2 > DNS_NAME_WIRE)
			return err_set(e, -EINVAL, "'%s' is no name to probe servers with", name);
		ret->question[at++] = (char)label.len;
		memcpy(ret->question + at, label.p, label.len);
		at += label.len;
	}
	ret->question[at + 2] = at > 0 ? DNS_A : DNS_NS;
	ret->question[at + 4] = 1; /* of the Internet */
	ret->question_len = (uint16_t)(at + 5);
	return 0;
}

/* ---- life ---- */

static void set_servers(struct dns_upstreams *u, const struct name_servers *servers)
{
	for (size_t i = 0; i < u->n; i++)
		dns_exchange_stop(&u->v[i].probe);
	for (u->n = 0; u->n < servers->n; u->n++) {
		struct upstream *s = &u->v[u->n];

		s->address = servers->v[u->n];
		s->misses = 0;
		s->probe = (struct dns_exchange){
			.egress = u->egress,
			.to = &s->address,
			.asker = &u->probe,
			.edns = true,
			.kept = &u->kept,
			.fn = on_probed,
			.arg = s,
			.fd = -1,
		};
	}
}

static int read_resolv_conf(struct name_servers *ret, struct err *e)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(RESOLV_MAX);
	struct err unread = ERR_NONE;

	*ret = (struct name_servers){.n = 0};
	if (read_file(RESOLV_CONF, &text, &unread) < 0)
		log_line(LOG_WARN, "cannot read which name servers there are, ignoring",
			 LOG_S("err", unread.msg));
	else
		name_servers_resolv(buf_view(&text), ret);
	return ret->n > 0 ? 0 : name_servers_parse(VIEW(FALLBACK), ret, e);
}

static bool are_known(const struct dns_upstreams *u, const struct name_servers *servers)
{
	for (size_t i = 0; i < u->n && i < servers->n; i++)
		if (memcmp(u->v[i].address.bytes, servers->v[i].bytes, 16) != 0 ||
		    u->v[i].address.v6 != servers->v[i].v6)
			return false;
	return u->n == servers->n;
}

void dns_upstreams_look_again(struct dns_upstreams *u)
{
	uint64_t now = loop_now_us(u->egress->loop);
	struct name_servers servers;
	struct err e = ERR_NONE;

	if (u->read_us == 0 || now - u->read_us < LOOK_AGAIN_US)
		return;
	u->read_us = now;
	if (read_resolv_conf(&servers, &e) < 0 || are_known(u, &servers))
		return;
	log_line(LOG_INFO, "the host asks other name servers now", LOG_I("n", (int64_t)servers.n));
	set_servers(u, &servers);
	begin_probes(u);
}

int dns_upstreams_new(struct egress *g, struct dns_upstreams **ret, struct err *e)
{
	struct name_servers servers;
	struct dns_asker probe;
	struct dns_upstreams *u;
	bool named;
	int r = name_servers_parse(view_of(g->settings->dns_upstream), &servers, e);

	if (r < 0)
		return r;
	named = servers.n > 0;
	if (!named)
		r = read_resolv_conf(&servers, e);
	if (r < 0)
		return r;
	r = make_probe(g->settings->dns_upstream_probe, &probe, e);
	if (r < 0)
		return r;
	u = mem_new(struct dns_upstreams);
	u->egress = g;
	u->probe = probe;
	u->kept = BUF_INIT(DNS_MESSAGE_MAX);
	u->asks = map_new();
	u->read_us = named ? 0 : loop_now_us(g->loop);
	list_init(&u->spare);
	set_servers(u, &servers);
	u->probes = loop_timer_new(g->loop, probe_all, u);
	*ret = u;
	return 0;
}

void dns_upstreams_free(struct dns_upstreams *u)
{
	if (!u)
		return;
	dns_asks_free(u);
	for (size_t i = 0; i < u->n; i++)
		dns_exchange_stop(&u->v[i].probe);
	map_free(u->asks);
	loop_timer_free(u->probes);
	buf_done(&u->kept);
	free(u);
}
