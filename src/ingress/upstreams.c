/*
 * ingress/upstreams.c - URLs of servers; sockets to them, through TLS if need be.
 */
#include "ingress/upstreams.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/strv.h"
#include "ingress/names.h"
#include "net/connect.h"
#include "net/loop.h"
#include "net/tls.h"

#define CONNECT_MS 10000

struct upstreams {
	struct upstream *v;
	size_t n;
	struct loop *loop;
	struct tls_client *tls; /* NULL if none of them speaks it */
	struct tls_bridges *bridges;
	struct list dials;
};

struct dial {
	struct list link;
	struct upstreams *all;
	const struct upstream *to;
	dial_fn *fn;
	void *arg;
	struct connect *connect;
	struct tls_bridge *shake;
	struct loop_task *failed; /* what went wrong at once is told later */
	struct err e;
};

/* ---- the list ---- */

static int take_url(struct upstream *to, const char *text, struct err *e)
{
	int r;

	to->text = mem_strdup(text);
	r = http_url_parse(view_of(to->text), &to->url, e);
	if (r == 0)
		r = names_look_up(to->url.host, to->ip, e);
	if (r < 0)
		return err_ctx(e, "--server %s", text);
	to->path = view_first(to->url.target, view_find(to->url.target, '?'));
	while (view_ends(to->path, VIEW("/")))
		to->path = view_first(to->path, to->path.len - 1);
	/* Paths of the API are written with it or without. */
	if (view_ends(to->path, VIEW("/v1")))
		to->path = view_first(to->path, to->path.len - 3);
	return 0;
}

int upstreams_new(const struct strv *urls, const char *ca, struct upstreams **ret, struct err *e)
{
	struct upstreams *u = mem_new(struct upstreams);
	bool tls = false;
	int r = 0;

	list_init(&u->dials);
	u->v = mem_new_array(struct upstream, urls->len);
	for (; r == 0 && u->n < urls->len; u->n++) {
		r = take_url(&u->v[u->n], urls->v[u->n], e);
		tls |= u->v[u->n].url.tls;
	}
	if (r == 0 && tls)
		r = tls_client_new(ca, &u->tls, e);
	if (r < 0) {
		upstreams_free(u);
		return r;
	}
	*ret = u;
	return 0;
}

void upstreams_begin(struct upstreams *u, struct loop *l)
{
	u->loop = l;
	if (u->tls)
		u->bridges = tls_bridges_new(l);
}

void upstreams_free(struct upstreams *u)
{
	if (!u)
		return;
	list_each_safe (it, tmp, &u->dials)
		dial_free(list_entry(it, struct dial, link));
	tls_bridges_free(u->bridges);
	tls_client_free(u->tls);
	for (size_t i = 0; i < u->n; i++)
		free(u->v[i].text);
	free(u->v);
	free(u);
}

size_t upstreams_n(const struct upstreams *u)
{
	return u->n;
}

const struct upstream *upstreams_at(const struct upstreams *u, size_t i)
{
	return &u->v[i];
}

/* ---- connections ---- */

static void tell(struct dial *d, int fd, const struct err *e)
{
	dial_fn *fn = d->fn;
	void *arg = d->arg;
	struct err why = *e;

	dial_free(d);
	fn(arg, fd, &why);
}

static void shaken(void *arg, int fd, const struct err *e)
{
	struct dial *d = arg;

	d->shake = NULL;
	tell(d, fd, e);
}

static void connected(void *arg, int fd, const struct err *e)
{
	struct dial *d = arg;

	connect_free(take_ptr(d->connect));
	if (fd >= 0 && d->to->url.tls)
		d->shake =
			tls_connect(d->all->bridges, d->all->tls, fd, d->to->url.host, shaken, d);
	else
		tell(d, fd, e);
}

static void failed_at_once(void *arg)
{
	struct dial *d = arg;

	tell(d, -1, &d->e);
}

struct dial *dial_new(struct upstreams *u, size_t i, dial_fn *fn, void *arg)
{
	struct dial *d = mem_new(struct dial);
	struct connect_to to = {.timeout_ms = CONNECT_MS};

	d->all = u;
	d->to = &u->v[i];
	d->fn = fn;
	d->arg = arg;
	d->failed = loop_task_new(u->loop, failed_at_once, d);
	list_push_back(&u->dials, &d->link);
	to.ip = d->to->ip;
	to.port = d->to->url.port;
	if (connect_new(u->loop, &to, connected, d, &d->connect, &d->e) < 0)
		loop_task_post(d->failed);
	return d;
}

void dial_free(struct dial *d)
{
	if (!d)
		return;
	list_remove(&d->link);
	connect_free(d->connect);
	tls_cancel(d->shake);
	loop_task_free(d->failed);
	free(d);
}
