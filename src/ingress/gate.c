/*
 * ingress/gate.c - a request goes through the steps in this order: which sandbox, whose is it, may
 * the client, then to the server on a connection that was kept, or on a new one.
 *
 * The server is told by the header OpenSandbox-Ingress-To what is meant, and by its API key that it
 * is us who say so: it asks no more, and believes what X-Forwarded-* headers say.
 */
#include "ingress/gate.h"

#include <errno.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "ingress/finder.h"
#include "ingress/intents.h"
#include "ingress/options.h"
#include "ingress/readiness.h"
#include "ingress/upstreams.h"
#include "net/http_proxy.h"
#include "net/http_server.h"

#define PAGE_MAX    4096
#define POWERED_BY  "Reverse-Proxy-Server-PowerBy"
#define HEADERS_MAX 7

/* A request on its way; in its arena. */
struct passage {
	struct gate *gate;
	struct http_exchange *x;
	struct preview preview;
	struct finding *finding; /* while servers are asked */
	struct dial *dial;	 /* while one is connected to */
	size_t server;
	char *token; /* the sandbox's; "" if it demands none */
	bool fresh;  /* no kept connection will do */
};

/* ---- what is said ---- */

static void fail(const struct passage *p, enum preview_problem problem, const char *detail)
{
	osb_cleanup(buf_done) struct buf page = BUF_INIT(PAGE_MAX);
	char sentence[PREVIEW_SENTENCE_MAX];
	struct view accept = VIEW_NONE;
	const char *type;

	(void)http_header(p->x, "Accept", &accept);
	preview_sentence(problem, p->preview.to.id, p->preview.to.port, detail, sentence);
	type = preview_page(&page, problem, preview_format(accept, PREVIEW_TEXT), sentence);
	if (preview_may_retry(problem))
		http_reply_header(p->x, "Retry-After", VIEW("1"));
	http_reply_header(p->x, "Cache-Control", VIEW("no-store"));
	http_reply(p->x, preview_status(problem), type, buf_view(&page));
}

/* ---- to the server ---- */

static void pass(struct passage *p);

static void upstream_failed(struct http_exchange *x, int code, const char *message)
{
	struct passage *p = http_user(x);

	if (code == -ESTALE) {
		p->fresh = true;
		pass(p);
		return;
	}
	finder_forget(p->gate->finder, p->preview.to.id);
	fail(p, code == -ETIMEDOUT ? PREVIEW_TIMEOUT : PREVIEW_UNREACHABLE, message);
}

static struct view rewrite(struct http_exchange *x, struct view name, struct view value)
{
	const struct passage *p = http_user(x);

	return preview_answer_header(http_arena(x), name, value, p->preview.prefix,
				     p->preview.to.port);
}

struct asking {
	struct http_proxy_options o;
	struct http1_header add[HEADERS_MAX];
	char keep_as[16];
};

static void add(struct asking *a, const char *name, struct view value)
{
	if (value.p)
		a->add[a->o.add_headers_n++] = (struct http1_header){view_of(name), value};
}

/* What clients say about where they come from counts only if somebody else wrote it. */
static void add_origin(const struct passage *p, struct asking *a)
{
	struct view host = VIEW_NONE, scheme = view_of(http_scheme(p->x)), from = http_peer(p->x);
	struct view said = VIEW_NONE;

	(void)http_header(p->x, "Host", &host);
	if (p->gate->options->trust_forwarded) {
		(void)http_header(p->x, "X-Forwarded-Host", &host);
		(void)http_header(p->x, "X-Forwarded-Proto", &scheme);
		if (http_header(p->x, "X-Forwarded-For", &said) && said.len)
			from = view_of(arena_printf(http_arena(p->x), VIEW_FMT ", " VIEW_FMT,
						    VIEW_ARG(said), VIEW_ARG(from)));
	}
	add(a, "X-Forwarded-Host", host);
	add(a, "X-Forwarded-Proto", scheme);
	add(a, "X-Forwarded-For", from);
}

static bool prepare(const struct passage *p, struct asking *a)
{
	const struct upstream *to = upstreams_at(p->gate->upstreams, p->server);
	const char *label, *path, *key = p->gate->options->api_key;
	struct arena *arena = http_arena(p->x);
	struct route_to plain = {.id = p->preview.to.id, .port = p->preview.to.port};

	label = preview_label(arena, &plain);
	path = arena_printf(arena, VIEW_FMT "%s" VIEW_FMT, VIEW_ARG(to->path),
			    view_starts(p->preview.target, VIEW("?")) ? "/" : "",
			    VIEW_ARG(p->preview.target));
	if (!label || !path)
		return false;
	snprintf(a->keep_as, sizeof(a->keep_as), "%zu", p->server);
	a->o = (struct http_proxy_options){
		.target = {.fd = -1},
		.path = view_of(path),
		.drop_headers = preview_dropped,
		.add_headers = a->add,
		.rewrite = rewrite,
		.keep_as = view_of(a->keep_as),
		.failed = upstream_failed,
	};
	add(a, "Host", to->url.authority);
	add(a, PREVIEW_TO_HEADER, view_of(label));
	add(a, "OPEN-SANDBOX-API-KEY", view_of(key));
	if (p->token[0])
		add(a, PREVIEW_SECURE_HEADER, view_of(p->token));
	add_origin(p, a);
	return true;
}

static void dialed(void *arg, int fd, const struct err *e)
{
	struct passage *p = arg;
	struct asking a;

	p->dial = NULL;
	http_on_gone(p->x, NULL, NULL);
	if (fd < 0) {
		upstream_failed(p->x, e->code, e->msg);
	} else if (!prepare(p, &a)) {
		fd_close(fd);
		fail(p, PREVIEW_BAD_ROUTE, "it is too long");
	} else {
		a.o.target.fd = fd;
		http_proxy(p->gate->loop, p->gate->proxies, p->x, &a.o);
	}
}

static void client_gone(struct http_exchange *x, void *arg)
{
	struct passage *p = arg;

	finding_cancel(p->finding);
	dial_free(p->dial);
}

static void pass(struct passage *p)
{
	struct gate *g = p->gate;
	struct asking a;

	if (!p->fresh) {
		if (!prepare(p, &a)) {
			fail(p, PREVIEW_BAD_ROUTE, "it is too long");
			return;
		}
		if (http_proxy_again(g->loop, g->proxies, p->x, &a.o))
			return;
	}
	http_on_gone(p->x, client_gone, p);
	p->dial = dial_new(g->upstreams, p->server, dialed, p);
}

/* ---- whose is it, and may the client ---- */

static bool check_access(struct passage *p, struct view token)
{
	const struct options *o = p->gate->options;
	struct view secure = VIEW_NONE;
	const char *why = NULL;

	preview_take_signature(&p->preview, token.len > 0, o->keys, o->keys_n);
	(void)http_header(p->x, PREVIEW_SECURE_HEADER, &secure);
	switch (preview_check(token, secure, &p->preview.to, o->keys, o->keys_n,
			      clock_wall_ms() / 1000, &why)) {
	case PREVIEW_ALLOWED:
		return true;
	case PREVIEW_NO_KEYS:
		fail(p, PREVIEW_NO_VERIFIER, why);
		return false;
	default:
		fail(p, PREVIEW_UNAUTHORIZED, why);
		return false;
	}
}

static void found(void *arg, const struct found_at *at)
{
	struct passage *p = arg;

	p->finding = NULL;
	http_on_gone(p->x, NULL, NULL);
	if (at->what == FOUND_NOWHERE) {
		fail(p, PREVIEW_UNKNOWN, NULL);
		return;
	}
	if (at->what == FOUND_ERROR) {
		log_line(LOG_WARN, "a sandbox cannot be looked for", LOG_S("err", at->why));
		fail(p, PREVIEW_UNREACHABLE, at->why);
		return;
	}
	if (!check_access(p, at->token))
		return;
	p->server = at->server;
	p->token = arena_str(http_arena(p->x), at->token);
	if (!p->token) {
		fail(p, PREVIEW_BAD_ROUTE, "it is too long");
		return;
	}
	if (p->gate->intents)
		intents_publish(p->gate->intents, p->preview.to.id, p->preview.to.port,
				p->preview.target);
	pass(p);
}

/* ---- which sandbox ---- */

/* Path and query byte for byte, whatever form they came in. */
static struct view target_of(struct http_exchange *x)
{
	struct view target = http_head(x)->target, query = http_query(x);

	if (view_starts(target, VIEW("/")))
		return target;
	return view_of(arena_printf(http_arena(x), VIEW_FMT "%s" VIEW_FMT, VIEW_ARG(http_path(x)),
				    query.len ? "?" : "", VIEW_ARG(query)));
}

static void route(struct http_exchange *x, struct gate *g)
{
	struct passage *p = arena_alloc(http_arena(x), sizeof(*p));
	struct preview_request r = {.target = target_of(x)};
	struct finding *finding;

	if (!p || !r.target.p) {
		http_reply(x, 503, "text/plain; charset=utf-8",
			   VIEW("OpenSandbox Ingress: out of memory for this request\n"));
		return;
	}
	p->gate = g;
	p->x = x;
	http_set_user(x, p);
	http_reply_header(x, POWERED_BY, VIEW("OpenSandbox-ingress"));
	(void)http_header(x, "Host", &r.host);
	if (!http_header(x, PREVIEW_TO_HEADER, &r.to))
		(void)http_header(x, PREVIEW_OLD_HEADER, &r.to);
	if (!preview_find(g->options->mode, &r, &p->preview)) {
		fail(p, PREVIEW_BAD_ROUTE, NULL);
		return;
	}
	http_on_gone(x, client_gone, p);
	/* What is known already is told at once, and then there may be no request any more. */
	finding = finder_find(g->finder, p->preview.to.id, p->preview.to.port, found, p);
	if (finding)
		p->finding = finding;
}

void gate_handle(struct http_exchange *x, void *arg)
{
	struct view path = http_path(x);
	struct gate *g = arg;

	if (log_enabled(LOG_DEBUG))
		log_line(LOG_DEBUG, "request", LOG_V("method", http_head(x)->method),
			 LOG_V("path", path), LOG_V("peer", http_peer(x)));
	if (view_is(path, "/status.ok"))
		http_reply(x, 200, "text/plain; charset=utf-8", VIEW("OK"));
	else if (view_is(path, "/status.ok/network-readiness"))
		readiness_answer(x, g);
	else
		route(x, g);
}
