/*
 * ingress/readiness.c - see readiness.h.
 */
#include "ingress/readiness.h"

#include <stdbool.h>

#include "base/arena.h"
#include "ingress/ask.h"
#include "ingress/gate.h"
#include "ingress/options.h"
#include "ingress/upstreams.h"
#include "net/http_server.h"

/* In the exchange's arena. */
struct readiness {
	struct http_exchange *x;
	size_t waiting;
	bool degraded;
	struct probe *probes;
	size_t n;
};

struct probe {
	struct readiness *all;
	struct ask *ask;
};

static void answered(void *arg, int status, struct view body, const struct err *e)
{
	struct probe *p = arg;
	struct readiness *r = p->all;

	p->ask = NULL;
	r->degraded |= status != 200;
	if (--r->waiting)
		return;
	http_on_gone(r->x, NULL, NULL);
	http_reply(r->x, 200, "text/plain; charset=utf-8",
		   r->degraded ? VIEW("DEGRADED") : VIEW("OK"));
}

static void client_gone(struct http_exchange *x, void *arg)
{
	struct readiness *r = arg;

	for (size_t i = 0; i < r->n; i++)
		ask_free(r->probes[i].ask);
}

void readiness_answer(struct http_exchange *x, const struct gate *g)
{
	struct readiness *r = arena_alloc(http_arena(x), sizeof(*r));
	size_t n = upstreams_n(g->upstreams);

	if (r)
		r->probes = arena_alloc(http_arena(x), n * sizeof(*r->probes));
	if (!r || !r->probes) {
		http_reply(x, 200, "text/plain; charset=utf-8", VIEW("DEGRADED"));
		return;
	}
	r->x = x;
	r->n = r->waiting = n;
	http_on_gone(x, client_gone, r);
	for (size_t i = 0; i < n; i++) {
		r->probes[i].all = r;
		r->probes[i].ask = ask_new(g->loop, g->upstreams, i, g->options->api_key,
					   VIEW("/health"), answered, &r->probes[i]);
	}
}
