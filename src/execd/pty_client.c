/*
 * execd/pty_client.c - the terminal's WebSocket protocol (docs/execd-pty.md).
 */
#include "execd/pty_client.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/mem.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "execd/app.h"
#include "execd/errors.h"
#include "execd/pty_ring.h"
#include "net/http_server.h"
#include "net/ws_conn.h"

#define BYTE_STDIN    0x00
#define BYTE_REPLAY   0x03
#define REPLAY_HEADER 9 /* the byte and an offset */
#define CLOSE_TAKEN   4001
#define VIOLATIONS    5 /* of a viewer who types, before it is shown out */

struct client {
	struct list link;
	struct pty_clients *all;
	struct pty_watcher watcher;
	struct pty *pty; /* NULL once it has left */
	struct ws_conn *ws;
	bool viewer;
	bool behind;   /* a viewer's queue is full: it reads on from the ring later */
	uint64_t sent; /* offset up to which a viewer has been served */
	unsigned violations;
};

static const struct ws_options options = {
	.message_max = 1024 * 1024,
	.queue_high = 256 * 1024,
	.ping_ms = 30 * 1000,
	.read_timeout_ms = 60 * 1000,
	.write_timeout_ms = 10 * 1000,
};

/* ---- what is said to the client ---- */

static void send_json(struct client *c, struct json_writer *w)
{
	json_write_object_end(w);
	if (json_writer_end(w) == 0)
		(void)ws_conn_send(c->ws, WS_TEXT, buf_view(w->out));
}

static void begin_json(struct json_writer *w, struct buf *out, const char *type)
{
	json_writer_init(w, out);
	json_write_object(w);
	json_put_cstr(w, "type", type);
}

static void send_error(struct client *c, const char *code, const char *message)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(4096);
	struct json_writer w;

	begin_json(&w, &out, "error");
	json_put_cstr(&w, "error", message);
	json_put_cstr(&w, "code", code);
	send_json(c, &w);
}

static void send_connected(struct client *c)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(4096);
	struct json_writer w;

	begin_json(&w, &out, "connected");
	json_put_cstr(&w, "session_id", pty_id(c->pty));
	json_put_cstr(&w, "mode", pty_mode(c->pty) == PTY_TERMINAL ? "pty" : "pipe");
	json_put_cstr(&w, "role", c->viewer ? "viewer" : "holder");
	send_json(c, &w);
}

static void send_pong(struct client *c)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(64);
	struct json_writer w;

	begin_json(&w, &out, "pong");
	send_json(c, &w);
}

static bool send_at(struct client *c, uint64_t offset, struct view bytes)
{
	unsigned char header[REPLAY_HEADER] = {BYTE_REPLAY};

	bytes_put_be64(header + 1, offset);
	return ws_conn_send2(c->ws, WS_BINARY, view_mem(header, sizeof(header)), bytes);
}

/* Everything kept from `since` on, in one frame; nothing when there is nothing. */
static void send_replay(struct client *c, uint64_t since)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(PTY_RING_BYTES);
	const struct pty_ring *ring = pty_output(c->pty);

	if (pty_ring_copy(ring, &since, &out) == 0 && out.len)
		(void)send_at(c, since, buf_view(&out));
	c->sent = ring->total;
}

/* ---- leaving ---- */

/* Away from the terminal; the connection lives on to say goodbye. */
static void leave(struct client *c)
{
	if (!c->pty)
		return;
	pty_unwatch(&c->watcher);
	if (pty_holder(c->pty) == &c->watcher)
		pty_set_holder(c->pty, NULL);
	c->pty = NULL;
}

static void client_free(struct client *c)
{
	leave(c);
	list_remove(&c->link);
	c->all->n--;
	ws_conn_free(c->ws);
	free(c);
}

static void on_closed(void *arg, unsigned code, struct view reason)
{
	client_free(arg);
}

/* ---- what the terminal says ---- */

static void on_output(struct pty_watcher *w, enum pty_stream s, uint64_t offset, struct view bytes)
{
	struct client *c = container_of(w, struct client, watcher);
	char type = (char)s;

	if (!c->viewer) {
		if (!ws_conn_send2(c->ws, WS_BINARY, view_mem(&type, 1), bytes))
			pty_hold_output(c->pty, true);
		return;
	}
	if (c->behind)
		return;
	c->behind = !send_at(c, offset, bytes);
	c->sent = offset + bytes.len;
}

/* A viewer whose queue has room reads on from the ring, over a gap if need be. */
static void catch_up(struct client *c)
{
	const struct pty_ring *ring = pty_output(c->pty);
	bool room = true;

	while (room) {
		struct view bytes = pty_ring_read(ring, &c->sent, PTY_CHUNK_BYTES);

		if (!bytes.len)
			break;
		room = send_at(c, c->sent, bytes);
		c->sent += bytes.len;
	}
	c->behind = !room;
}

static void on_exited(struct pty_watcher *w, int code)
{
	struct client *c = container_of(w, struct client, watcher);
	osb_cleanup(buf_done) struct buf out = BUF_INIT(256);
	struct json_writer json;

	if (c->viewer && c->behind)
		send_replay(c, c->sent);
	begin_json(&json, &out, "exit");
	json_put_int(&json, "exit_code", code);
	send_json(c, &json);
	leave(c);
	ws_conn_close(c->ws, WS_CLOSE_NORMAL, "process exited");
}

static void on_input_drained(struct pty_watcher *w)
{
	ws_conn_resume(container_of(w, struct client, watcher)->ws);
}

static void on_drained(void *arg)
{
	struct client *c = arg;

	if (!c->pty)
		return;
	if (c->viewer)
		catch_up(c);
	else
		pty_hold_output(c->pty, false);
}

/* ---- what the client says ---- */

static void refuse_viewer(struct client *c)
{
	send_error(c, "READ_ONLY", "a viewer only watches");
	if (++c->violations < VIOLATIONS)
		return;
	leave(c);
	ws_conn_close(c->ws, WS_CLOSE_POLICY, "READ_ONLY");
}

static void type(struct client *c, struct view bytes)
{
	int r;

	if (c->viewer) {
		refuse_viewer(c);
		return;
	}
	if (!bytes.len)
		return;
	r = pty_type(c->pty, bytes);
	if (r > 0) {
		ws_conn_pause(c->ws);
	} else if (r < 0) {
		send_error(c, "STDIN_WRITE_FAILED", strerror(-r));
		leave(c);
		ws_conn_close(c->ws, WS_CLOSE_INTERNAL, "STDIN_WRITE_FAILED");
	}
}

static void frame_stdin(struct client *c, const struct json *v)
{
	struct view data = VIEW_NONE;

	(void)json_str(json_get(v, "data"), &data);
	type(c, data);
}

static void frame_signal(struct client *c, const struct json *v)
{
	static const struct {
		const char *name;
		int number;
	} signals[] = {
		{"SIGINT", SIGINT},   {"SIGTERM", SIGTERM}, {"SIGKILL", SIGKILL},
		{"SIGQUIT", SIGQUIT}, {"SIGHUP", SIGHUP},
	};
	struct view name = VIEW_NONE;

	if (c->viewer) {
		refuse_viewer(c);
		return;
	}
	(void)json_str(json_get(v, "signal"), &name);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		if (view_is(name, signals[i].name)) {
			pty_signal(c->pty, signals[i].number);
			return;
		}
	}
	send_error(c, "INVALID_FRAME",
		   "'signal' must be SIGINT, SIGTERM, SIGKILL, SIGQUIT or SIGHUP");
}

static void frame_resize(struct client *c, const struct json *v)
{
	int64_t cols = 0, rows = 0;

	if (c->viewer) {
		refuse_viewer(c);
		return;
	}
	(void)json_int(json_get(v, "cols"), &cols);
	(void)json_int(json_get(v, "rows"), &rows);
	if (cols > 0 && rows > 0 && cols <= UINT16_MAX && rows <= UINT16_MAX)
		pty_set_size(c->pty, (uint16_t)cols, (uint16_t)rows);
}

static void frame_ping(struct client *c, const struct json *v)
{
	send_pong(c);
}

static void on_text(struct client *c, struct view text)
{
	static const struct {
		const char *type;
		void (*handle)(struct client *c, const struct json *v);
	} frames[] = {
		{"stdin", frame_stdin},
		{"signal", frame_signal},
		{"resize", frame_resize},
		{"ping", frame_ping},
	};
	osb_cleanup(json_freep) struct json *v = NULL;
	struct view name = VIEW_NONE;
	struct err e = ERR_NONE;

	if (json_parse(text, 0, &v, &e) < 0 || json_kind(v) != JSON_OBJECT)
		return;
	(void)json_str(json_get(v, "type"), &name);
	for (size_t i = 0; i < ARRAY_LEN(frames); i++) {
		if (view_is(name, frames[i].type)) {
			frames[i].handle(c, v);
			return;
		}
	}
	(void)err_set(&e, -EINVAL, "unknown frame type '" VIEW_FMT "'",
		      VIEW_ARG(view_first(name, 64)));
	send_error(c, "INVALID_FRAME", e.msg);
}

static void on_message(void *arg, enum ws_opcode opcode, struct view data)
{
	struct client *c = arg;

	if (!c->pty)
		return;
	if (opcode == WS_TEXT)
		on_text(c, data);
	else if (data.len && data.p[0] == BYTE_STDIN)
		type(c, view_skip(data, 1));
}

static const struct ws_events events = {on_message, on_drained, on_closed};

/* ---- attaching ---- */

/* May this client come in?  If not, the exchange was answered. */
static bool admit(const struct pty_clients *all, struct pty *p, struct http_exchange *x,
		  const struct pty_attach *how)
{
	if (all->n >= all->max) {
		http_reply_error(x, 503, CODE_UNAVAILABLE, "too many terminal clients");
		return false;
	}
	if (how->viewer && !pty_running(p)) {
		http_reply_error(x, 409, "NOT_RUNNING", "nothing runs in pty session %s yet",
				 pty_id(p));
		return false;
	}
	if (!how->viewer && pty_holder(p) && !(how->takeover && http_head(x)->upgrade)) {
		http_reply_error(x, 409, CODE_ALREADY_CONNECTED,
				 "another client is connected to pty session %s", pty_id(p));
		return false;
	}
	return true;
}

static void evict_holder(struct pty *p)
{
	struct pty_watcher *w = pty_holder(p);
	struct client *old;

	if (!w)
		return;
	old = container_of(w, struct client, watcher);
	leave(old);
	ws_conn_close(old->ws, CLOSE_TAKEN, "TAKEN_OVER");
}

static void begin(struct client *c, const struct pty_attach *how)
{
	struct err e = ERR_NONE;

	if (!c->viewer) {
		evict_holder(c->pty);
		if (!pty_running(c->pty) && pty_start(c->pty, how->mode, &e) < 0) {
			send_error(c, "START_FAILED", e.msg);
			c->pty = NULL;
			ws_conn_close(c->ws, WS_CLOSE_INTERNAL, "START_FAILED");
			return;
		}
		pty_set_holder(c->pty, &c->watcher);
	}
	send_replay(c, how->since);
	send_connected(c);
	pty_watch(c->pty, &c->watcher);
}

void pty_client_attach(struct pty_clients *all, struct app *app, struct pty *p,
		       struct http_exchange *x, const struct pty_attach *how)
{
	struct client *c;

	if (!admit(all, p, x, how))
		return;
	c = mem_new(struct client);
	if (ws_conn_accept(app->loop, x, &options, VIEW_NONE, &events, c, &c->ws) < 0) {
		free(c);
		return;
	}
	c->all = all;
	c->pty = p;
	c->viewer = how->viewer;
	c->watcher = (struct pty_watcher){
		.output = on_output, .input_drained = on_input_drained, .exited = on_exited};
	list_init(&c->watcher.link);
	list_push_back(&all->members, &c->link);
	all->n++;
	begin(c, how);
}

void pty_clients_init(struct pty_clients *all, size_t max)
{
	list_init(&all->members);
	all->n = 0;
	all->max = max;
}

void pty_clients_done(struct pty_clients *all)
{
	list_each_safe (it, next, &all->members)
		client_free(list_entry(it, struct client, link));
}
