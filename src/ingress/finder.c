/*
 * ingress/finder.c - see finder.h.
 */
#include "ingress/finder.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/json.h"
#include "codec/url.h"
#include "ingress/ask.h"
#include "ingress/upstreams.h"
#include "net/loop.h"
#include "policy/preview.h"

#define FOUND_US   (5 * 1000000ull)
#define NOWHERE_US (1 * 1000000ull) /* a sandbox may be made any time */
#define PLACES_MAX 16384
#define WAIT_MAX   8192 /* requests that wait for servers */
#define TOKEN_MAX  1024
#define PATH_BYTES 1024
#define WHY_MAX	   520
#define NO_SERVER  SIZE_MAX

/* A sandbox, as far as we know. */
struct place {
	struct list lru;
	char *id;
	size_t server; /* that has it, or had it last; NO_SERVER */
	bool exists;
	char *token;
	uint64_t until_us;
	/* while servers are asked */
	struct ask *ask;
	uint16_t port;
	size_t asked, first; /* how many, and who was the first of them */
	size_t at;	     /* who is asked now */
	char why[WHY_MAX];   /* what a server failed with */
	struct finder *finder;
	struct list waiting;
	bool telling; /* it is on the stack */
};

struct finding {
	struct list link;
	struct finder *finder;
	finder_fn *fn;
	void *arg;
};

struct finder {
	struct loop *loop;
	struct upstreams *upstreams;
	const char *api_key;
	struct map *places;
	struct list lru; /* the longest unused first */
	size_t waiting_n;
};

static void ask_next(struct place *p);

/* ---- places ---- */

static void set_token(struct place *p, struct view token)
{
	if (p->token)
		explicit_bzero(p->token, strlen(p->token));
	free(p->token);
	p->token = token.len ? mem_strndup(token.p, token.len) : NULL;
}

static void place_free(struct place *p)
{
	(void)map_remove(p->finder->places, view_of(p->id));
	list_remove(&p->lru);
	ask_free(p->ask);
	list_each_safe (it, tmp, &p->waiting)
		finding_cancel(list_entry(it, struct finding, link));
	set_token(p, VIEW_NONE);
	free(p->id);
	free(p);
}

/* Room for another: the longest unused goes, unless it is being asked for. */
static void make_room(struct finder *f)
{
	list_each_safe (it, tmp, &f->lru) {
		struct place *p = list_entry(it, struct place, lru);

		if (map_len(f->places) < PLACES_MAX)
			return;
		if (!p->ask && !p->telling)
			place_free(p);
	}
}

static struct place *place_of(struct finder *f, struct view id)
{
	struct place *p = map_get(f->places, id);

	if (p) {
		list_remove(&p->lru);
		list_push_back(&f->lru, &p->lru);
		return p;
	}
	make_room(f);
	p = mem_new(struct place);
	p->finder = f;
	p->id = mem_strndup(id.p, id.len);
	p->server = NO_SERVER;
	list_init(&p->waiting);
	list_push_back(&f->lru, &p->lru);
	(void)map_put(f->places, id, p);
	return p;
}

/* ---- answers ---- */

static struct found_at what_is_known(const struct place *p)
{
	if (p->exists)
		return (struct found_at){.what = FOUND,
					 .server = p->server,
					 .token = view_of(p->token ? p->token : "")};
	return (struct found_at){.what = FOUND_NOWHERE};
}

/* Callees may ask again: those are others. */
static void tell_all(struct place *p, struct found_at at)
{
	struct list told;

	p->telling = true;
	list_init(&told);
	while (!list_empty(&p->waiting)) {
		struct list *it = p->waiting.next;

		list_remove(it);
		list_push_back(&told, it);
	}
	while (!list_empty(&told)) {
		struct finding *w = list_entry(told.next, struct finding, link);
		finder_fn *fn = w->fn;
		void *arg = w->arg;

		finding_cancel(w);
		fn(arg, &at);
	}
	p->telling = false;
}

static void conclude(struct place *p)
{
	struct finder *f = p->finder;
	char why[WHY_MAX];

	if (p->exists || !p->why[0]) {
		p->until_us = loop_now_us(f->loop) + (p->exists ? FOUND_US : NOWHERE_US);
		tell_all(p, what_is_known(p));
		return;
	}
	memcpy(why, p->why, sizeof(why));
	tell_all(p, (struct found_at){.what = FOUND_ERROR, .why = why});
}

/* {"endpoint": ..., "headers": {"OpenSandbox-Secure-Access": token}} */
static bool take_endpoint(struct place *p, struct view body)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	const struct json *value;
	struct err e = ERR_NONE;
	struct view name, text, token = VIEW_NONE;
	void *it = NULL;

	if (json_parse(body, 0, &v, &e) < 0 || !json_str(json_get(v, "endpoint"), &text))
		return false;
	while (json_next(json_get(v, "headers"), &it, &name, &value))
		if (view_iis(name, PREVIEW_SECURE_HEADER) && json_str(value, &token) &&
		    token.len > TOKEN_MAX)
			return false;
	set_token(p, token);
	return true;
}

static void answered(void *arg, int status, struct view body, const struct err *e)
{
	struct place *p = arg;
	const struct upstream *to = upstreams_at(p->finder->upstreams, p->at);

	p->ask = NULL;
	if (status == 200 && take_endpoint(p, body)) {
		p->exists = true;
		p->server = p->at;
		conclude(p);
		return;
	}
	if (status == 401 || status == 403)
		snprintf(p->why, sizeof(p->why), "%s does not accept the API key", to->url.host);
	else if (status != 404)
		snprintf(p->why, sizeof(p->why), "%s: %s", to->url.host,
			 status ? "it answered with something else than an endpoint" : e->msg);
	ask_next(p);
}

static void ask_next(struct place *p)
{
	osb_cleanup(buf_done) struct buf path = BUF_INIT(PATH_BYTES);
	struct finder *f = p->finder;
	size_t n = upstreams_n(f->upstreams);

	if (p->asked == n || buf_append_str(&path, "/v1/sandboxes/") < 0 ||
	    url_encode(&path, view_of(p->id), /* keep_slash= */ false) < 0 ||
	    buf_printf(&path, "/endpoints/%u?use_server_proxy=true", p->port) < 0) {
		conclude(p);
		return;
	}
	/* The first is who had it last; then all others in their order. */
	if (p->asked == 0)
		p->at = p->first;
	else
		p->at = p->asked - 1 < p->first ? p->asked - 1 : p->asked;
	p->asked++;
	p->ask = ask_new(f->loop, f->upstreams, p->at, f->api_key, buf_view(&path), answered, p);
}

/* ---- questions ---- */

struct finder *finder_new(struct loop *l, struct upstreams *u, const char *api_key)
{
	struct finder *f = mem_new(struct finder);

	f->loop = l;
	f->upstreams = u;
	f->api_key = api_key;
	f->places = map_new();
	list_init(&f->lru);
	return f;
}

void finder_free(struct finder *f)
{
	if (!f)
		return;
	list_each_safe (it, tmp, &f->lru)
		place_free(list_entry(it, struct place, lru));
	map_free(f->places);
	free(f);
}

static struct finding *wait_for(struct finder *f, struct place *p, finder_fn *fn, void *arg)
{
	struct finding *w = mem_new(struct finding);

	w->finder = f;
	w->fn = fn;
	w->arg = arg;
	list_push_back(&p->waiting, &w->link);
	f->waiting_n++;
	return w;
}

struct finding *finder_find(struct finder *f, struct view id, uint16_t port, finder_fn *fn,
			    void *arg)
{
	struct place *p = place_of(f, id);
	struct found_at at = what_is_known(p);
	struct finding *w;

	if (p->until_us > loop_now_us(f->loop)) {
		fn(arg, &at);
		return NULL;
	}
	if (f->waiting_n >= WAIT_MAX || map_len(f->places) > PLACES_MAX) {
		at = (struct found_at){.what = FOUND_ERROR,
				       .why = "too many requests wait for a server's answer"};
		fn(arg, &at);
		return NULL;
	}
	w = wait_for(f, p, fn, arg);
	if (!p->ask) {
		p->exists = false;
		p->port = port;
		p->asked = 0;
		p->first = p->server == NO_SERVER ? 0 : p->server;
		p->why[0] = '\0';
		ask_next(p);
	}
	return w;
}

void finding_cancel(struct finding *w)
{
	if (!w)
		return;
	w->finder->waiting_n--;
	list_remove(&w->link);
	free(w);
}

void finder_forget(struct finder *f, struct view id)
{
	struct place *p = map_get(f->places, id);

	if (p)
		p->until_us = 0;
}
