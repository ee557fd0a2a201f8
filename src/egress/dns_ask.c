/*
 * egress/dns_ask.c - questions to upstream servers that are under way.
 *
 * A question is tried with the servers that are well first.  Each next attempt begins when the one
 * before has failed, or has kept us waiting; whoever answers first is believed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "egress/dns_cache.h"
#include "egress/dns_upstreams_int.h"
#include "egress/egress.h"
#include "net/loop.h"

#define ASKS_MAX     16384 /* at once; each has a socket, at least */
#define ATTEMPTS_MIN 3	   /* datagrams get lost */
#define ATTEMPTS_MAX NAME_SERVERS_MAX
#define PATIENCE_MS  1000u /* before another server is asked, too */

struct attempt {
	struct dns_exchange exchange;
	size_t server;
};

struct dns_ask {
	struct dns_upstreams *all;
	struct list link; /* when spare */
	struct list waits;
	struct dns_asker asker;
	char key[DNS_KEY_MAX];
	size_t key_len;
	struct loop_timer *timer;
	uint64_t until_us;
	unsigned patience_ms;
	struct attempt attempts[ATTEMPTS_MAX];
	size_t attempts_n, attempts_max;
	size_t order[NAME_SERVERS_MAX], order_n;
	bool failed[NAME_SERVERS_MAX]; /* they said that they cannot */
	bool plain;		       /* somebody did not understand EDNS */
};

static void advance(struct dns_ask *a);

/* Those that are well first, in the operator's order. */
static void put_in_order(struct dns_ask *a)
{
	const struct dns_upstreams *u = a->all;
	size_t n = 0;

	for (int well = 1; well >= 0; well--)
		for (size_t i = 0; i < u->n; i++)
			if (upstream_is_well(&u->v[i]) == (well == 1))
				a->order[n++] = i;
	a->order_n = n;
}

static void finish(struct dns_ask *a, struct view kept)
{
	struct dns_upstreams *u = a->all;

	(void)map_remove(u->asks, view_mem(a->key, a->key_len));
	loop_timer_stop(a->timer);
	for (size_t i = 0; i < a->attempts_n; i++)
		dns_exchange_stop(&a->attempts[i].exchange);
	while (!list_empty(&a->waits)) {
		struct dns_wait *w = list_entry(a->waits.next, struct dns_wait, link);

		list_remove(&w->link);
		w->fn(w, kept);
	}
	list_push_front(&u->spare, &a->link);
	if (kept.len == 0)
		dns_upstreams_look_again(u);
}

static void on_exchanged(struct dns_exchange *x, const struct dns_reply *reply, struct view kept,
			 const struct err *e)
{
	struct dns_ask *a = x->arg;
	struct dns_upstreams *u = a->all;
	struct attempt *t = container_of(x, struct attempt, exchange);

	if (e) {
		log_line(LOG_DEBUG, "a name server failed", LOG_S("err", e->msg));
		upstream_missed(&u->v[t->server]);
		advance(a);
		return;
	}
	upstream_answered(&u->v[t->server], loop_now_us(u->egress->loop));
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

static bool is_waiting(const struct dns_ask *a)
{
	for (size_t i = 0; i < a->attempts_n; i++)
		if (dns_exchange_active(&a->attempts[i].exchange))
			return true;
	return false;
}

/* Asks the next server that has not refused yet; false when there is none. */
static bool try_next(struct dns_ask *a)
{
	struct dns_upstreams *u = a->all;

	for (size_t k = 0; a->attempts_n < a->attempts_max && k < a->order_n; k++) {
		struct attempt *t = &a->attempts[a->attempts_n];
		size_t server = a->order[(a->attempts_n + k) % a->order_n];
		struct err e = ERR_NONE;

		if (a->failed[server])
			continue;
		a->attempts_n++;
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
		upstream_missed(&u->v[server]);
		k = SIZE_MAX; /* from the beginning, with one try less */
	}
	return false;
}

static void set_timer(struct dns_ask *a)
{
	uint64_t now = loop_now_us(a->all->egress->loop);
	uint64_t left_ms = a->until_us > now ? (a->until_us - now) / 1000 : 0;

	if (a->attempts_n < a->attempts_max)
		left_ms = MIN(left_ms, (uint64_t)a->patience_ms);
	loop_timer_start(a->timer, left_ms);
}

/* The last try has failed, or has taken long. */
static void advance(struct dns_ask *a)
{
	if (!try_next(a) && !is_waiting(a))
		finish(a, VIEW_NONE);
	else
		set_timer(a);
}

static void on_patience(void *arg)
{
	struct dns_ask *a = arg;
	struct attempt *last = a->attempts_n ? &a->attempts[a->attempts_n - 1] : NULL;
	uint64_t now = loop_now_us(a->all->egress->loop);

	if (last && dns_exchange_active(&last->exchange))
		upstream_silent(&a->all->v[last->server], now);
	/* A millisecond early is late enough: timers are no finer. */
	if (now + 1000 >= a->until_us)
		finish(a, VIEW_NONE);
	else
		advance(a);
}

static struct dns_ask *take_spare(struct dns_upstreams *u)
{
	struct dns_ask *a;

	if (!list_empty(&u->spare)) {
		a = list_entry(u->spare.next, struct dns_ask, link);
		list_remove(&a->link);
		return a;
	}
	if (u->asks_n == ASKS_MAX)
		return NULL;
	a = mem_new(struct dns_ask);
	a->all = u;
	a->timer = loop_timer_new(u->egress->loop, on_patience, a);
	list_init(&a->link);
	list_init(&a->waits);
	u->asks_n++;
	return a;
}

static void begin(struct dns_ask *a, uint32_t timeout_s)
{
	struct dns_upstreams *u = a->all;

	a->attempts_n = 0;
	a->attempts_max = MAX(u->n, (size_t)ATTEMPTS_MIN);
	a->patience_ms = MIN(PATIENCE_MS, timeout_s * 1000 / (unsigned)a->attempts_max);
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
	struct dns_ask *a = map_get(u->asks, key);

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

static void free_ask(struct dns_ask *a)
{
	for (size_t i = 0; i < a->attempts_n; i++)
		dns_exchange_stop(&a->attempts[i].exchange);
	loop_timer_free(a->timer);
	free(a);
}

void dns_asks_free(struct dns_upstreams *u)
{
	struct view key;
	size_t pos = 0;
	void *a;

	while (map_next(u->asks, &pos, &key, &a))
		free_ask(a);
	list_each_safe (it, next, &u->spare)
		free_ask(list_entry(it, struct dns_ask, link));
}
