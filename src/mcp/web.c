/*
 * mcp/web.c - see web.h.
 */
#include "mcp/web.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/rand.h"
#include "codec/json.h"
#include "codec/jsonrpc.h"
#include "mcp/mcp.h"
#include "mcp/options.h"
#include "mcp/pool.h"
#include "mcp/session.h"
#include "mcp/web_guard.h"
#include "mcp/web_post.h"
#include "net/http_server.h"
#include "net/loop.h"

#define SESSIONS_MAX	256 /* then the one that was silent longest ends */
#define SESSION_HEADER	"Mcp-Session-Id"
#define VERSION_HEADER	"MCP-Protocol-Version"
#define WRITE_STALL_MS	120000
#define CONNECTIONS_MAX 1024

struct web {
	struct mcp *mcp;
	const struct options *options;
	struct loop *loop;
	struct http_server *server;
	struct web_mail *mail;
	struct loop_signal *signals[2];
	struct map *sessions;
	struct list by_use; /* the same; the one used last at the end */
};

struct web_session {
	struct list link;
	struct web *web;
	struct session *session;
	struct web_post *stream; /* of GET, or NULL */
	char id[RAND_HEX_LEN + 1];
};

/* ---- sessions ---- */

static void session_end(struct web_session *s)
{
	(void)map_remove(s->web->sessions, view_of(s->id));
	list_remove(&s->link);
	web_stream_end(s->stream);
	session_close(s->session);
	free(s);
}

static struct web_session *session_begin(struct web *web)
{
	struct web_session *s = mem_new(struct web_session);

	if (map_len(web->sessions) >= SESSIONS_MAX)
		session_end(list_entry(web->by_use.next, struct web_session, link));
	s->web = web;
	s->session = session_new(web->mcp);
	rand_hex(s->id);
	(void)map_put(web->sessions, view_of(s->id), s);
	list_push_back(&web->by_use, &s->link);
	return s;
}

static void on_stream_gone(void *arg)
{
	struct web_session *s = arg;

	s->stream = NULL;
}

/* ---- requests ---- */

static void refuse(struct http_exchange *x, int status, int code, const char *why)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(64u << 10);
	struct json_writer w;

	json_writer_init(&w, &out);
	jsonrpc_write_error(&w, NULL, code, why);
	if (json_writer_end(&w) < 0)
		buf_clear(&out);
	http_reply(x, status, "application/json", buf_view(&out));
}

/* The session that the request names; NULL after an answer. */
static struct web_session *named_session(struct web *web, struct http_exchange *x)
{
	struct web_session *s;
	struct view id;

	if (!http_header(x, SESSION_HEADER, &id)) {
		refuse(x, 400, JSONRPC_INVALID_REQUEST,
		       "the header " SESSION_HEADER " is missing: send initialize first");
		return NULL;
	}
	s = map_get(web->sessions, id);
	if (!s) {
		refuse(x, 404, JSONRPC_INVALID_REQUEST,
		       "there is no such session: send initialize again");
		return NULL;
	}
	list_remove(&s->link);
	list_push_back(&web->by_use, &s->link);
	return s;
}

static bool accepts(const struct http_exchange *x, struct view type)
{
	struct view accept;

	if (!http_header(x, "Accept", &accept))
		return true;
	return view_find_view(accept, type) < accept.len ||
	       view_find_view(accept, VIEW("*/*")) < accept.len;
}

static bool is_initialize(struct view body)
{
	struct err e = ERR_NONE;
	struct jsonrpc_msg m;
	bool is = jsonrpc_parse(body, &m, &e) == 0 && m.kind == JSONRPC_REQUEST &&
		  view_is(m.method, "initialize");

	jsonrpc_msg_done(&m);
	return is;
}

static void on_message(struct http_exchange *x, struct view body, void *arg)
{
	struct web *web = arg;
	struct web_session *s;
	struct web_post *p;
	struct view id;

	if (!http_header(x, SESSION_HEADER, &id) && is_initialize(body)) {
		s = session_begin(web);
		http_reply_header(x, SESSION_HEADER, view_of(s->id));
	} else {
		s = named_session(web, x);
	}
	if (!s)
		return;
	p = web_post_new(web->mail, x);
	switch (session_take(s->session, body, web_post_sink(p))) {
	case SESSION_NOTHING:
		web_post_free(p);
		http_on_gone(x, NULL, NULL);
		http_reply(x, 202, NULL, VIEW_NONE);
		break;
	case SESSION_LATER:
		if (accepts(x, VIEW("text/event-stream")))
			web_post_stream(p);
		break;
	case SESSION_ANSWERED:
		break;
	}
}

static void post(struct web *web, struct http_exchange *x)
{
	struct view type = VIEW_NONE;

	(void)http_header(x, "Content-Type", &type);
	if (!view_istarts(type, VIEW("application/json"))) {
		refuse(x, 415, JSONRPC_INVALID_REQUEST, "Content-Type must be application/json");
		return;
	}
	if (!accepts(x, VIEW("application/json"))) {
		refuse(x, 406, JSONRPC_INVALID_REQUEST,
		       "Accept must name application/json and text/event-stream");
		return;
	}
	http_body_collect(x, MCP_MESSAGE_MAX, on_message, web);
}

static void get(struct web *web, struct http_exchange *x)
{
	struct web_session *s;

	if (!accepts(x, VIEW("text/event-stream"))) {
		refuse(x, 406, JSONRPC_INVALID_REQUEST, "Accept must name text/event-stream");
		return;
	}
	s = named_session(web, x);
	if (!s)
		return;
	if (s->stream) {
		refuse(x, 409, JSONRPC_INVALID_REQUEST, "this session has a stream already");
		return;
	}
	s->stream = web_stream_new(web->mail, x, on_stream_gone, s);
}

static void delete (struct web *web, struct http_exchange *x)
{
	struct web_session *s = named_session(web, x);

	if (!s)
		return;
	session_end(s);
	http_reply(x, 200, NULL, VIEW_NONE);
}

/* Is it for us, and from somebody who may speak to us?  Else it was answered. */
static bool is_welcome(struct web *web, struct http_exchange *x)
{
	struct view origin, host = VIEW_NONE, version;

	(void)http_header(x, "Host", &host);
	if ((web_host_is_local(view_of(web->options->host)) && !web_host_is_local(host)) ||
	    (http_header(x, "Origin", &origin) &&
	     !web_origin_is_fine(origin, web->options->host))) {
		refuse(x, 403, JSONRPC_INVALID_REQUEST, "other sites may not speak to this server");
		return false;
	}
	if (!view_is(http_path(x), "/mcp") && !view_is(http_path(x), "/mcp/")) {
		refuse(x, 404, JSONRPC_INVALID_REQUEST, "there is nothing but /mcp");
		return false;
	}
	if (http_header(x, VERSION_HEADER, &version) && !session_knows_version(version)) {
		refuse(x, 400, JSONRPC_INVALID_REQUEST,
		       VERSION_HEADER " names a version that is not spoken here");
		return false;
	}
	return true;
}

static void on_request(struct http_exchange *x, void *app)
{
	static const struct {
		const char *method;
		void (*handle)(struct web *web, struct http_exchange *x);
	} methods[] = {{"POST", post}, {"GET", get}, {"DELETE", delete}};
	struct web *web = app;

	if (!is_welcome(web, x))
		return;
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		if (view_is(http_head(x)->method, methods[i].method)) {
			methods[i].handle(web, x);
			return;
		}
	}
	http_reply_header(x, "Allow", VIEW("GET, POST, DELETE"));
	refuse(x, 405, JSONRPC_INVALID_REQUEST, "the method is not known here");
}

/* ---- the program ---- */

static void on_signal(void *arg, int signum)
{
	struct web *web = arg;

	(void)signum;
	loop_stop(web->loop);
}

/* Signals may be blocked from before: they are heard while somebody listens for them. */
static void hear_signals(int how)
{
	sigset_t ends;

	(void)sigemptyset(&ends);
	(void)sigaddset(&ends, SIGTERM);
	(void)sigaddset(&ends, SIGINT);
	(void)pthread_sigmask(how, &ends, NULL);
}

static int open_all(struct web *web, struct err *e)
{
	struct http_limits limits = http_limits_default;
	int r;

	limits.write_stall_ms = WRITE_STALL_MS;
	limits.connections = CONNECTIONS_MAX;
	r = loop_new(&web->loop, e);
	if (r == 0)
		r = web_mail_new(web->loop, &web->mail, e);
	if (r == 0)
		r = loop_signal_new(web->loop, SIGTERM, on_signal, web, &web->signals[0], e);
	if (r == 0)
		r = loop_signal_new(web->loop, SIGINT, on_signal, web, &web->signals[1], e);
	if (r == 0)
		r = http_server_new(web->loop, &limits, on_request, web, &web->server, e);
	if (r == 0)
		r = http_server_listen_tcp(web->server, web->options->host, web->options->port, e);
	return r;
}

static void close_all(struct web *web)
{
	while (!list_empty(&web->by_use))
		session_end(list_entry(web->by_use.next, struct web_session, link));
	/* Calls that are cancelled end now; their letters have somewhere to go until then. */
	pool_free(web->mcp->pool);
	web->mcp->pool = NULL;
	http_server_free(web->server);
	web_mail_free(web->mail);
	loop_signal_free(web->signals[0]);
	loop_signal_free(web->signals[1]);
	loop_free(web->loop);
	map_free(web->sessions);
}

int web_serve(struct mcp *mcp, const struct options *o)
{
	struct web web = {.mcp = mcp, .options = o, .sessions = map_new()};
	struct err e = ERR_NONE;
	int code = EXIT_FAILURE;

	list_init(&web.by_use);
	if (open_all(&web, &e) < 0) {
		log_line(LOG_ERROR, "cannot start", LOG_S("err", e.msg));
	} else {
		if (!web_host_is_local(view_of(o->host)))
			log_line(LOG_WARN, "whoever reaches this address may use the sandboxes",
				 LOG_S("host", o->host));
		log_line(LOG_INFO, "listening", LOG_S("host", o->host),
			 LOG_I("port", http_server_port(web.server)));
		hear_signals(SIG_UNBLOCK);
		loop_run(web.loop);
		hear_signals(SIG_BLOCK);
		code = EXIT_SUCCESS;
	}
	close_all(&web);
	return code;
}
