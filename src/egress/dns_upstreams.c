/*
 * egress/dns_upstreams.c - which servers there are, how they do, and the questions under way.
 *
 * A question is tried with the servers that are well first.  Each next try begins when the one
 * before has failed, or has kept us waiting; whoever answers first is believed.
 */
#include "egress/dns_upstreams.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/dns_reply.h"
#include "codec/name_servers.h"
#include "egress/dns_cache.h"
#include "egress/dns_exchange.h"
#include "egress/egress.h"
#include "egress/read_file.h"
#include "egress/settings.h"
#include "net/loop.h"

#define ASKS_MAX    16384 /* at once; each has a socket, at least */
#define TRIES_MIN   3	  /* datagrams get lost */
#define TRIES_MAX   NAME_SERVERS_MAX
#define PATIENCE_MS 1000u /* before another server is asked, too */
#define SILENCE_US  5000000
#define MISSES_MAX  2 /* in a row, and a server is not well */
#define RESOLV_CONF "/etc/resolv.conf"
#define RESOLV_MAX  65536

struct upstream {
	struct name_server address;
	unsigned misses;
	uint64_t answered_us; /* when it last did */
	struct dns_exchange probe;
};

struct dns_upstreams {
	struct egress *egress;
	struct upstream v[NAME_SERVERS_MAX];
	size_t n;
	struct map *asks;  /* key -> struct ask */
	struct list spare; /* struct ask: those that are not in use */
	size_t asks_n;	   /* of both kinds */
	struct buf kept;
	unsigned holders;
	struct loop_timer *probes;
	struct dns_asker probe;
};

struct
try {
	struct dns_exchange exchange;
	size_t server;
};

struct ask {
	struct dns_upstreams *all;
	struct list link; /* when spare */
	struct list waits;
	struct dns_asker asker;
	char key[DNS_KEY_MAX];
	size_t key_len;
	struct loop_timer *timer;
	uint64_t until_us;
	unsigned patience_ms;
	struct try tries[TRIES_MAX];
	size_t tries_n, tries_max;
	size_t order[NAME_SERVERS_MAX];
	bool failed[NAME_SERVERS_MAX]; /* they said that they cannot */
	bool plain;		       /* somebody did not understand EDNS */
};

/* ---- how they do ---- */

static bool is_well(const struct upstream *s)
{
	return s->misses < MISSES_MAX;
}

static void say(const struct upstream *s, const char *what)
{
	char text[INET6_ADDRSTRLEN] = "";

	inet_ntop(s->address.v6 ? AF_INET6 : AF_INET, s->address.bytes, text, sizeof(text));
	log_line(LOG_WARN, what, LOG_S("server", text), LOG_I("port", s->address.port));
}

static void note_miss(struct upstream *s)
{
	s->misses++;
	if (s->misses == MISSES_MAX)
		say(s, "a name server does not answer, asking others first");
}

/* It may be the name's own servers that keep it waiting, and others get answers. */
static void note_silence(struct upstream *s, uint64_t now)
{
	if (s->answered_us + SILENCE_US < now)
		note_miss(s);
}

static void note_answer(struct upstream *s, uint64_t now)
{
	if (!is_well(s))
		say(s, "a name server answers again");
	s->misses = 0;
	s->answered_us = now;
}

/* ---- questions ---- */

static void advance(struct ask *a);

/* Those that are well first, in the operator's order. */
static void put_in_order(struct ask *a)
{
	const struct dns_upstreams *u = a->all;
	size_t n = 0;

	for (int well = 1; well >= 0; well--)
		for (size_t i = 0; i < u->n; i++)
			if (is_well(&u->v[i]) == (well == 1))
				a->order[n++] = i;
}

static void finish(struct ask *a, struct view kept)
{
	struct dns_upstreams *u = a->all;

	(void)map_remove(u->asks, view_mem(a->key, a->key_len));
	loop_timer_stop(a->timer);
	for (size_t i = 0; i < a->tries_n; i++)
		dns_exchange_stop(&a->tries[i].exchange);
	while (!list_empty(&a->waits)) {
		struct dns_wait *w = list_entry(a->waits.next, struct dns_wait, link);

		list_remove(&w->link);
		w->fn(w, kept);
	}
	list_push_front(&u->spare, &a->link);
}

static void on_exchanged(struct dns_exchange *x, const struct dns_reply *reply, struct view kept,
			 const struct err *e)
{
	struct ask *a = x->arg;
	struct dns_upstreams *u = a->all;
	struct try *t = container_of(x, struct try, exchange);

	if (e) {
		log_line(LOG_DEBUG, "a name server failed", LOG_S("err", e->msg));
		note_miss(&u->v[t->server]);
		advance(a);
		return;
	}
	note_answer(&u->v[t->server], loop_now_us(u->egress->loop));
	if (kept.len > 0) {
		dns_cache_put(u->egress->cache, view_mem(a->key, a->key_len), kept, reply->ttl_s,
			      loop_now_us(u->egress->loop));
		finish(a, kept);
		return;
	}
	if (x->edns && (reply->rcode == DNS_FORMERR || reply->rcode == DNS_NOTIMP))
		a->plain = true;
	else
		a->failed[t->server] = true;
	advance(a);
}

static bool is_waiting(const struct ask *a)
{
	for (size_t i = 0; i < a->tries_n; i++)
		if (dns_exchange_active(&a->tries[i].exchange))
			return true;
	return false;
}

/* Asks the next server that has not refused yet; false when there is none. */
static bool try_next(struct ask *a)
{
	struct dns_upstreams *u = a->all;

	for (size_t k = 0; a->tries_n < a->tries_max && k < u->n; k++) {
		struct try *t = &a->tries[a->tries_n];
		size_t server = a->order[(a->tries_n + k) % u->n];
		struct err e = ERR_NONE;

		if (a->failed[server])
			continue;
		a->tries_n++;
		t->server = server;
		t->exchange = (struct dns_exchange){
			.egress = u->egress,
			.to = &u->v[server].address,
			.asker = &a->asker,
			.edns = !a->plain,
			.kept = &u->kept,
			.fn = on_exchanged,
			.arg = a,
		};
		if (dns_exchange_start(&t->exchange, &e) == 0)
			return true;
		log_line(LOG_DEBUG, "a name server failed", LOG_S("err", e.msg));
		note_miss(&u->v[server]);
		k = SIZE_MAX; /* from the beginning, with one try less */
	}
	return false;
}

static void set_timer(struct ask *a)
{
	uint64_t now = loop_now_us(a->all->egress->loop);
	uint64_t left_ms = a->until_us > now ? (a->until_us - now) / 1000 : 0;

	if (a->tries_n < a->tries_max)
		left_ms = MIN(left_ms, (uint64_t)a->patience_ms);
	loop_timer_start(a->timer, left_ms);
}

/* The last try has failed, or has taken long. */
static void advance(struct ask *a)
{
	if (!try_next(a) && !is_waiting(a))
		finish(a, VIEW_NONE);
	else
		set_timer(a);
}

static void on_patience(void *arg)
{
	struct ask *a = arg;
	struct try *last = a->tries_n ? &a->tries[a->tries_n - 1] : NULL;
	uint64_t now = loop_now_us(a->all->egress->loop);

	if (last && dns_exchange_active(&last->exchange))
		note_silence(&a->all->v[last->server], now);
	/* A millisecond early is late enough: timers are no finer. */
	if (now + 1000 >= a->until_us)
		finish(a, VIEW_NONE);
	else
		advance(a);
}

static struct ask *take_spare(struct dns_upstreams *u)
{
	struct ask *a;

	if (!list_empty(&u->spare)) {
		a = list_entry(u->spare.next, struct ask, link);
		list_remove(&a->link);
		return a;
	}
	if (u->asks_n == ASKS_MAX)
		return NULL;
	a = mem_new(struct ask);
	a->all = u;
	a->timer = loop_timer_new(u->egress->loop, on_patience, a);
	list_init(&a->link);
	list_init(&a->waits);
	u->asks_n++;
	return a;
}

static void begin(struct ask *a, uint32_t timeout_s)
{
	struct dns_upstreams *u = a->all;

	a->tries_n = 0;
	a->tries_max = MAX(u->n, (size_t)TRIES_MIN);
	a->patience_ms = MIN(PATIENCE_MS, timeout_s * 1000 / (unsigned)a->tries_max);
	a->until_us = loop_now_us(u->egress->loop) + timeout_s * (1000 * 1000ull);
	a->plain = false;
	memset(a->failed, 0, sizeof(a->failed));
	put_in_order(a);
	if (try_next(a))
		set_timer(a);
	else
		loop_timer_start(a->timer, 0); /* nobody is called back from in here */
}

int dns_upstreams_ask(struct dns_upstreams *u, const struct dns_asker *asker, uint32_t timeout_s,
		      struct dns_wait *w)
{
	char room[DNS_KEY_MAX];
	struct view key = dns_asker_key(asker, room);
	struct ask *a = map_get(u->asks, key);

	if (!a) {
		a = take_spare(u);
		if (!a)
			return -EBUSY;
		a->asker = *asker;
		memcpy(a->key, key.p, key.len);
		a->key_len = key.len;
		map_put(u->asks, key, a);
		begin(a, timeout_s);
	}
	list_push_back(&a->waits, &w->link);
	return 0;
}

void dns_wait_cancel(struct dns_wait *w)
{
	list_remove(&w->link);
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
		note_miss(s);
	else
		note_answer(s, loop_now_us(x->egress->loop));
}

static void probe_all(void *arg)
{
	struct dns_upstreams *u = arg;

	for (size_t i = 0; i < u->n; i++) {
		struct upstream *s = &u->v[i];
		struct err e = ERR_NONE;

		if (dns_exchange_active(&s->probe)) {
			dns_exchange_stop(&s->probe);
			note_miss(s);
		}
		if (dns_exchange_start(&s->probe, &e) < 0)
			note_miss(s);
	}
}

void dns_upstreams_hold(struct dns_upstreams *u)
{
	/* One server is asked however it does. */
	if (u->holders++ == 0 && u->n > 1)
		loop_timer_repeat(u->probes,
				  u->egress->settings->dns_upstream_probe_interval_sec * 1000ull);
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

static int find_servers(const struct settings *s, struct name_servers *ret, struct err *e)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(RESOLV_MAX);
	struct err unread = ERR_NONE;
	int r = name_servers_parse(view_of(s->dns_upstream), ret, e);

	if (r < 0 || ret->n > 0)
		return r;
	if (read_file(RESOLV_CONF, &text, &unread) < 0)
		log_line(LOG_WARN, "cannot read which name servers there are, ignoring",
			 LOG_S("err", unread.msg));
	else
		name_servers_resolv(buf_view(&text), ret);
	if (ret->n == 0)
		r = name_servers_parse(VIEW("8.8.8.8"), ret, e);
	return r;
}

int dns_upstreams_new(struct egress *g, struct dns_upstreams **ret, struct err *e)
{
	struct name_servers servers;
	struct dns_asker probe;
	struct dns_upstreams *u;
	int r = find_servers(g->settings, &servers, e);

	if (r == 0)
		r = make_probe(g->settings->dns_upstream_probe, &probe, e);
	if (r < 0)
		return r;
	u = mem_new(struct dns_upstreams);
	u->egress = g;
	u->probe = probe;
	u->kept = BUF_INIT(DNS_MESSAGE_MAX);
	u->asks = map_new();
	list_init(&u->spare);
	for (; u->n < servers.n; u->n++) {
		u->v[u->n].address = servers.v[u->n];
		u->v[u->n].probe = (struct dns_exchange){
			.egress = g,
			.to = &u->v[u->n].address,
			.asker = &u->probe,
			.edns = true,
			.kept = &u->kept,
			.fn = on_probed,
			.arg = &u->v[u->n],
			.fd = -1,
		};
	}
	u->probes = loop_timer_new(g->loop, probe_all, u);
	*ret = u;
	return 0;
}

static void free_ask(struct ask *a)
{
	for (size_t i = 0; i < a->tries_n; i++)
		dns_exchange_stop(&a->tries[i].exchange);
	loop_timer_free(a->timer);
	free(a);
}

void dns_upstreams_free(struct dns_upstreams *u)
{
	struct view key;
	size_t pos = 0;
	void *a;

	if (!u)
		return;
	while (map_next(u->asks, &pos, &key, &a))
		free_ask(a);
	list_each_safe (it, next, &u->spare)
		free_ask(list_entry(it, struct ask, link));
	for (size_t i = 0; i < u->n; i++)
		dns_exchange_stop(&u->v[i].probe);
	map_free(u->asks);
	loop_timer_free(u->probes);
	buf_done(&u->kept);
	free(u);
}
