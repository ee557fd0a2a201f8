/*
 * server/ingress.c - see ingress.h.
 *
 * A request goes through the steps in this order: which sandbox, may it, is there somebody to
 * answer; then on a connection that was kept, or on a new one.
 */
#include "server/ingress.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "net/http_proxy.h"
#include "net/http_server.h"
#include "runtime/runtime.h"
#include "server/api_network.h"
#include "server/app.h"
#include "server/config.h"
#include "server/endpoints.h"
#include "server/exchange.h"
#include "server/resume.h"
#include "server/sandboxes.h"

#define CONNECT_MS 10000
#define PAGE_MAX   4096

/* ---- what is said ---- */

static void fail(struct http_exchange *x, const struct ingress *i, enum preview_problem problem,
		 const char *detail)
{
	osb_cleanup(buf_done) struct buf page = BUF_INIT(PAGE_MAX);
	char sentence[PREVIEW_SENTENCE_MAX];
	struct view accept = VIEW_NONE;
	const char *type;

	(void)http_header(x, "Accept", &accept);
	preview_sentence(problem, i->preview.to.id, i->preview.to.port, detail, sentence);
	type = preview_page(&page, problem,
			    preview_format(accept, i->gateway ? PREVIEW_TEXT : PREVIEW_JSON),
			    sentence);
	if (preview_may_retry(problem))
		http_reply_header(x, "Retry-After", VIEW("1"));
	http_reply_header(x, "Cache-Control", VIEW("no-store"));
	http_reply(x, preview_status(problem), type, buf_view(&page));
}

/* ---- the other server ---- */

static void dial(struct http_exchange *x, struct ingress *i, const struct sandbox *b);

static void upstream_failed(struct http_exchange *x, int code, const char *message)
{
	struct ingress *i = http_user(x);

	if (code == -ESTALE) {
		const struct sandbox *b = sandboxes_find(i->app->sandboxes, i->preview.to.id);

		i->fresh = true;
		if (b)
			dial(x, i, b);
		else
			fail(x, i, PREVIEW_UNKNOWN, NULL);
		return;
	}
	fail(x, i, preview_problem_of(code), code == -ECONNREFUSED ? NULL : message);
}

static struct view rewrite(struct http_exchange *x, struct view name, struct view value)
{
	const struct ingress *i = http_user(x);
	const struct preview *p = &i->preview;

	return preview_answer_header(http_arena(x), name, value, p->prefix, p->to.port);
}

struct asking {
	struct http_proxy_options o;
	struct http1_header add[4];
	char host[PREVIEW_HOST_MAX];
	struct keep_as {
		char id[40];
		uint16_t port;
	} keep_as;
};

/* Where the request comes from: as we see it, or as the gateway in front of us did. */
static void add_origin(struct http_exchange *x, const struct ingress *i, struct asking *a)
{
	struct view host = VIEW_NONE, scheme = view_of(http_scheme(x)), from = http_peer(x);

	(void)http_header(x, "Host", &host);
	if (i->front) {
		(void)http_header(x, "X-Forwarded-Host", &host);
		(void)http_header(x, "X-Forwarded-Proto", &scheme);
		(void)http_header(x, "X-Forwarded-For", &from);
	}
	a->add[1] = (struct http1_header){VIEW("X-Forwarded-Host"), host};
	a->add[2] = (struct http1_header){VIEW("X-Forwarded-Proto"), scheme};
	a->add[3] = (struct http1_header){VIEW("X-Forwarded-For"), from};
}

static const char *const *dropped(const struct http_exchange *x, const struct ingress *i)
{
	if (i->gateway)
		return preview_dropped;
	return http_head(x)->upgrade ? preview_dropped_upgrade : preview_dropped_shared;
}

static void prepare(struct http_exchange *x, const struct ingress *i, const struct sandbox *b,
		    struct asking *a)
{
	const struct config *c = i->app->config;
	uint16_t port = i->preview.to.port;

	preview_host(port, a->host);
	a->keep_as = (struct keep_as){.port = port};
	memcpy(a->keep_as.id, b->id, sizeof(b->id));
	a->add[0] = (struct http1_header){VIEW("Host"), view_of(a->host)};
	add_origin(x, i, a);
	a->o = (struct http_proxy_options){
		.target = {.fd = -1, .connect_timeout_ms = CONNECT_MS},
		.path = i->preview.target,
		.drop_headers = dropped(x, i),
		.add_headers = a->add,
		.add_headers_n = ARRAY_LEN(a->add),
		.rewrite = rewrite,
		.hides_server = true,
		.keep_as = view_mem(&a->keep_as, sizeof(a->keep_as)),
		.head_timeout_ms = port == ENDPOINTS_EXECD_PORT
					   ? 0
					   : (uint64_t)c->ingress_answer_timeout_seconds * 1000,
		.failed = upstream_failed,
	};
}

static void connected(void *arg, int fd, const struct err *e)
{
	struct waiting *w = arg;
	struct app *app = w->app;
	struct http_exchange *x = waiting_end(w);
	const struct ingress *i;
	const struct sandbox *b;
	struct asking a;

	if (!x) {
		fd_close(fd);
		return;
	}
	if (e) {
		upstream_failed(x, e->code, e->msg);
		return;
	}
	i = http_user(x);
	b = sandboxes_find(app->sandboxes, i->preview.to.id);
	if (!b) {
		fd_close(fd);
		fail(x, i, PREVIEW_UNKNOWN, NULL);
		return;
	}
	prepare(x, i, b, &a);
	a.o.target.fd = fd;
	http_proxy(app->loop, app->proxies, x, &a.o);
}

static void dial(struct http_exchange *x, struct ingress *i, const struct sandbox *b)
{
	struct app *app = i->app;
	struct runtime *r = app->runtime;
	uint16_t port = i->preview.to.port;
	struct asking a;

	if (!i->fresh) {
		prepare(x, i, b, &a);
		if (http_proxy_again(app->loop, app->proxies, x, &a.o))
			return;
	}
	if (port == ENDPOINTS_EXECD_PORT)
		r->ops->connect_execd(r, b->id, connected, waiting_new(x, app));
	else
		r->ops->connect(r, b->id, port, connected, waiting_new(x, app));
}

/* ---- who may, and whether anybody answers ---- */

/* "/path" of "scheme://host/path/". */
static struct view path_of(const char *address)
{
	struct view path = view_of(address);
	size_t scheme = view_find_view(path, VIEW("://"));

	if (scheme < path.len)
		path = view_skip(path, scheme + 3);
	path = view_skip(path, view_find(path, '/'));
	while (view_ends(path, VIEW("/")))
		path = view_first(path, path.len - 1);
	return path;
}

/* A query alone stands for that of "/"; and in front of a prefix comes what the server's own front
 * takes away. */
static bool complete(struct http_exchange *x, struct ingress *i)
{
	const struct config *c = i->app->config;
	struct view *target = &i->preview.target, *prefix = &i->preview.prefix;
	struct view front = path_of(i->gateway ? c->gateway_address : c->eip);

	if (view_starts(*target, VIEW("?")))
		*target = view_of(arena_printf(http_arena(x), "/" VIEW_FMT, VIEW_ARG(*target)));
	if (prefix->len && front.len)
		*prefix = view_of(arena_printf(http_arena(x), VIEW_FMT VIEW_FMT, VIEW_ARG(front),
					       VIEW_ARG(*prefix)));
	if (target->len && (prefix->p || front.len == 0))
		return true;
	http_reply_error(x, 414, "SANDBOX::INVALID_PARAMETER", "the path is too long");
	return false;
}

static bool check_access(struct http_exchange *x, struct ingress *i, const struct sandbox *b)
{
	const struct config *c = i->app->config;
	struct view secure = VIEW_NONE, token = view_of(b->spec.secure_token);
	const char *why = NULL;

	if (i->front)
		return true;
	preview_take_signature(&i->preview, token.len > 0, c->ingress_keys, c->ingress_keys_n);
	(void)http_header(x, PREVIEW_SECURE_HEADER, &secure);
	switch (preview_check(token, secure, &i->preview.to, c->ingress_keys, c->ingress_keys_n,
			      clock_wall_ms() / 1000, &why)) {
	case PREVIEW_ALLOWED:
		return true;
	case PREVIEW_NO_KEYS:
		fail(x, i, PREVIEW_NO_VERIFIER, why);
		return false;
	default:
		fail(x, i, PREVIEW_UNAUTHORIZED, why);
		return false;
	}
}

/* A paused sandbox moves again, or does not. */
static void resumed(void *arg, struct http_exchange *x, const char *why)
{
	struct ingress *i = arg;

	if (why)
		fail(x, i, PREVIEW_NOT_RESUMED, why);
	else
		ingress_pass(x, i);
}

void ingress_pass(struct http_exchange *x, struct ingress *i)
{
	struct app *app = i->app;
	struct sandbox *b = sandboxes_find(app->sandboxes, i->preview.to.id);

	http_set_user(x, i);
	if (i->preview.to.port == 0) {
		fail(x, i, PREVIEW_BAD_ROUTE, NULL);
		return;
	}
	if (!b) {
		fail(x, i,
		     sandboxes_expired(app->sandboxes, i->preview.to.id) ? PREVIEW_EXPIRED
									 : PREVIEW_UNKNOWN,
		     NULL);
		return;
	}
	if (!i->admitted && (!check_access(x, i, b) || !complete(x, i)))
		return;
	i->admitted = true;
	if (i->preview.to.port == API_NETWORK_PORT) {
		struct view target = i->preview.target;

		api_network_proxy(x, app, b, view_first(target, view_find(target, '?')));
		return;
	}
	switch (b->state) {
	case SANDBOX_PENDING:
		fail(x, i, PREVIEW_STARTING, b->message ? b->message : "it waits for its image");
		return;
	case SANDBOX_PAUSING:
	case SANDBOX_PAUSED:
	case SANDBOX_RESUMING:
		if (b->spec.resume_on_request)
			resumes_wait(app->resumes, b, x, resumed, i);
		else if (i->preview.to.port == ENDPOINTS_EXECD_PORT)
			dial(x, i, b); /* commands wait until somebody resumes it */
		else
			fail(x, i, PREVIEW_PAUSED, NULL);
		return;
	case SANDBOX_RUNNING:
		sandboxes_accessed(app->sandboxes, b);
		dial(x, i, b);
		return;
	default:
		fail(x, i, PREVIEW_ENDED, b->message);
	}
}

/* ---- the gateway ---- */

static bool names_by_path(const struct config *c, struct view *target)
{
	struct view prefix = path_of(c->gateway_address), first;

	/* A front that leaves the address's own path in place is as good as one that does not. */
	if (prefix.len && view_starts(*target, prefix))
		*target = view_skip(*target, prefix.len);
	if (!view_starts(*target, VIEW("/")))
		return false;
	first = view_skip(*target, 1);
	first = view_first(first, view_find(first, '/'));
	/* Ids are UUIDs; no path of the API begins with one. */
	return first.len == 36 && first.p[8] == '-' && first.p[13] == '-' && first.p[18] == '-' &&
	       first.p[23] == '-';
}

static bool is_for_gateway(const struct config *c, struct preview_request *r)
{
	switch ((enum preview_mode)c->gateway_mode) {
	case PREVIEW_WILDCARD:
		return preview_is_below(r->host, view_of(c->gateway_address));
	case PREVIEW_HEADER:
		return r->to.p != NULL;
	default:
		return names_by_path(c, &r->target);
	}
}

struct view ingress_target(struct http_exchange *x)
{
	struct view target = http_head(x)->target, query = http_query(x);
	char *text;

	if (view_starts(target, VIEW("/")))
		return target;
	text = arena_printf(http_arena(x), VIEW_FMT "%s" VIEW_FMT, VIEW_ARG(http_path(x)),
			    query.len ? "?" : "", VIEW_ARG(query));
	return view_of(text);
}

/* Whoever stands in front of us has the API key. */
static bool is_front(struct http_exchange *x, const struct config *c)
{
	struct view key;

	return c->api_key && http_header(x, "OPEN-SANDBOX-API-KEY", &key) &&
	       bytes_equal_secret(key, view_of(c->api_key));
}

struct ingress *ingress_find(struct http_exchange *x, struct app *app)
{
	const struct config *c = app->config;
	struct preview_request r = {.target = ingress_target(x)};
	enum preview_mode mode = (enum preview_mode)c->gateway_mode;
	struct ingress *i;
	bool front;

	if (!r.target.p)
		return NULL;
	(void)http_header(x, "Host", &r.host);
	if (!http_header(x, PREVIEW_TO_HEADER, &r.to))
		(void)http_header(x, PREVIEW_OLD_HEADER, &r.to);
	front = r.to.p && is_front(x, c);
	/* A server without a key is open to every gateway, and believes none. */
	if (front || (r.to.p && !c->api_key))
		mode = PREVIEW_HEADER;
	else if (!c->ingress_gateway || !is_for_gateway(c, &r))
		return NULL;
	/* A host of its own is one sandbox's: none of its pages asks another there. */
	if (mode == PREVIEW_WILDCARD)
		r.to = VIEW_NONE;
	i = arena_alloc(http_arena(x), sizeof(*i));
	if (!i)
		return NULL;
	i->app = app;
	i->gateway = true;
	i->front = front;
	if (!preview_find(mode, &r, &i->preview))
		i->preview.to.port = 0;
	return i;
}
