/*
 * sdk/terminal.c - terminals over WebSocket.
 */
#include <inttypes.h>
#include <opensandbox/terminal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/rand.h"
#include "codec/base64.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "codec/ws.h"
#include "codec/ws_reader.h"
#include "sdk/asking.h"
#include "sdk/client_int.h"
#include "sdk/fail.h"
#include "sdk/sandbox_int.h"
#include "sdk/wire.h"

#define BODY_MAX    (1u << 20)
#define MESSAGE_MAX (2u << 20)
#define FRAME_MAX   (64u << 10)
#define READ_BYTES  (64u << 10)

/* The first byte of a binary message. */
enum { TYPED = 0, STANDARD = 1, ERRORS = 2, REPLAY = 3 };

struct osb_terminal {
	osb_client *client;
	struct wire *wire;
	struct ws_reader reader;
	struct ws_event next; /* that osb_terminal_pending() has seen */
	bool has_next;
	int64_t offset; /* behind the output that was seen */
	char text[256];
};

/* ---- sessions ---- */

int osb_terminal_create(osb_sandbox *s, const char *cwd, const char *command, const osb_call *call,
			char *ret_id, osb_error *e)
{
	osb_cleanup(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	struct json_writer w;
	struct asking q;
	int r = asking_exec(s, OSB_PORT_EXEC, "POST", "/pty", call, &q, e);

	json_writer_init(&w, &body);
	json_write_object(&w);
	if (cwd)
		json_put_cstr(&w, "cwd", cwd);
	if (command)
		json_put_cstr(&w, "command", command);
	json_write_object_end(&w);
	if (r == 0 && json_writer_end(&w) < 0)
		r = fail(e, OSB_ERR_INVALID, "the command is larger than %u bytes", BODY_MAX);
	if (r == 0) {
		asking_json(&q, &body);
		r = asking_id(s->client, &q, call, "session_id", ret_id, e);
	}
	asking_done(&q);
	return r;
}

int osb_terminal_delete(osb_sandbox *s, const char *id, const osb_call *call, osb_error *e)
{
	struct asking q;
	int r = asking_exec(s, OSB_PORT_EXEC, "DELETE", "/pty", call, &q, e);

	if (r == 0) {
		asking_segment(&q, id, "");
		r = asking_do(s->client, &q, call, e);
	}
	asking_done(&q);
	return r;
}

/* ---- attaching ---- */

static void put_way(struct asking *q, const osb_attach *how)
{
	char since[24];

	/* Beyond any end there is nothing to replay. */
	snprintf(since, sizeof(since), "%" PRId64, how->since < 0 ? INT64_MAX : how->since);
	asking_param(q, "since", how->since ? since : NULL);
	asking_param(q, "takeover", how->takeover ? "1" : NULL);
	asking_param(q, "mode", how->viewer ? "viewer" : NULL);
	asking_param(q, "pty", how->pipes ? "0" : NULL);
}

static void put_handshake(struct asking *q, char key[WS_KEY_LEN + 1])
{
	unsigned char random[16];

	rand_bytes(random, sizeof(random));
	base64_format(random, sizeof(random), key);
	asking_header(q, "Upgrade", "websocket");
	asking_header(q, "Connection", "Upgrade");
	asking_header(q, "Sec-WebSocket-Version", "13");
	asking_header(q, "Sec-WebSocket-Key", key);
}

int osb_terminal_attach(osb_sandbox *s, const char *id, const osb_attach *how, const osb_call *call,
			osb_terminal **ret, osb_error *e)
{
	static const osb_attach usual = {0};
	struct buf rest = BUF_INIT(MESSAGE_MAX);
	char key[WS_KEY_LEN + 1];
	struct wire *wire = NULL;
	struct asking q;
	osb_terminal *t;
	int r = asking_exec(s, OSB_PORT_EXEC, "GET", "/pty", call, &q, e);

	if (r == 0) {
		asking_segment(&q, id, "/ws");
		put_way(&q, how ? how : &usual);
		put_handshake(&q, key);
		q.ask.target = buf_view(&q.target);
		q.ask.twice = false;
		r = ask_upgrade(s->client, &q.ask, call, &wire, &rest, e);
	}
	asking_done(&q);
	if (r < 0) {
		buf_done(&rest);
		return r;
	}
	t = mem_new(osb_terminal);
	t->client = s->client;
	t->wire = wire;
	ws_reader_init(&t->reader, false, MESSAGE_MAX);
	ws_reader_take(&t->reader, &rest);
	*ret = t;
	return 0;
}

int osb_terminal_fd(const osb_terminal *t)
{
	return wire_fd(t->wire);
}

/* ---- what is sent ---- */

static struct wire_limit limit_of(const osb_terminal *t, const osb_call *call)
{
	uint32_t ms = call && call->timeout_ms ? call->timeout_ms : t->client->timeout_ms;

	return (struct wire_limit){
		.deadline_us = ms == OSB_FOREVER ? 0 : clock_mono_us() + (uint64_t)ms * 1000,
		.cancel = call ? call->cancel : NULL,
	};
}

/* One frame: what a client sends is masked. */
static int send_frame(osb_terminal *t, enum ws_opcode opcode, struct view payload,
		      const struct wire_limit *limit, struct err *e)
{
	osb_cleanup(buf_done) struct buf frame = BUF_INIT(FRAME_MAX + WS_HEADER_MAX);
	unsigned char mask[4];
	size_t at;

	rand_bytes(mask, sizeof(mask));
	if (ws_frame_format(&frame, true, opcode, payload.len, mask) < 0)
		return err_set(e, -E2BIG, "the message is too long");
	at = frame.len;
	if (buf_append_view(&frame, payload) < 0)
		return err_set(e, -E2BIG, "the message is too long");
	ws_mask(frame.mem + frame.start + at, payload.len, mask, 0);
	return wire_write(t->wire, buf_view(&frame), limit, e);
}

int osb_terminal_write(osb_terminal *t, const void *bytes, size_t n, const osb_call *call,
		       osb_error *e)
{
	struct wire_limit limit = limit_of(t, call);
	struct view rest = view_mem(bytes, n);
	char block[16384];
	struct err why = ERR_NONE;

	fail_none(e);
	while (rest.len) {
		struct view piece = view_first(rest, sizeof(block) - 1);

		block[0] = TYPED;
		memcpy(block + 1, piece.p, piece.len);
		if (send_frame(t, WS_BINARY, view_mem(block, piece.len + 1), &limit, &why) < 0)
			return fail_err(e, &why);
		rest = view_skip(rest, piece.len);
	}
	return 0;
}

static int send_text(osb_terminal *t, const char *text, const osb_call *call, osb_error *e)
{
	struct wire_limit limit = limit_of(t, call);
	struct err why = ERR_NONE;

	fail_none(e);
	return send_frame(t, WS_TEXT, view_of(text), &limit, &why) < 0 ? fail_err(e, &why) : 0;
}

int osb_terminal_resize(osb_terminal *t, unsigned columns, unsigned rows, const osb_call *call,
			osb_error *e)
{
	char text[80];

	snprintf(text, sizeof(text), "{\"type\":\"resize\",\"cols\":%u,\"rows\":%u}", columns,
		 rows);
	return send_text(t, text, call, e);
}

int osb_terminal_signal(osb_terminal *t, const char *name, const osb_call *call, osb_error *e)
{
	char text[80];

	if (!name || strlen(name) > 16 || strpbrk(name, "\"\\"))
		return fail(e, OSB_ERR_INVALID, "this is no signal's name");
	snprintf(text, sizeof(text), "{\"type\":\"signal\",\"signal\":\"%s\"}", name);
	return send_text(t, text, call, e);
}

/* ---- what comes ---- */

static void take_output(osb_terminal *t, struct view data, osb_terminal_event *ret)
{
	int kind = data.len ? (unsigned char)data.p[0] : -1;

	data = view_skip(data, 1);
	if (kind == REPLAY && data.len >= 8) {
		t->offset = (int64_t)bytes_get_be64((const unsigned char *)data.p);
		data = view_skip(data, 8);
	} else if (kind != STANDARD && kind != ERRORS) {
		return;
	}
	t->offset += (int64_t)data.len;
	ret->kind = kind == ERRORS ? OSB_TERMINAL_ERROR_OUTPUT : OSB_TERMINAL_OUTPUT;
	ret->bytes = data.p;
	ret->n = data.len;
}

static void take_text(osb_terminal *t, struct view text, osb_terminal_event *ret)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	struct view type = VIEW_NONE, problem = VIEW_NONE;
	struct err ignored = ERR_NONE;
	int64_t code = -1;

	if (json_parse(text, 0, &v, &ignored) < 0)
		return;
	(void)json_str(json_get(v, "type"), &type);
	if (view_is(type, "exit")) {
		(void)json_int(json_get(v, "exit_code"), &code);
		ret->kind = OSB_TERMINAL_EXIT;
		ret->exit_code = (int)code;
	} else if (view_is(type, "error") && json_str(json_get(v, "error"), &problem)) {
		/* What follows it, if anything, is the end: it is told then. */
		snprintf(t->text, sizeof(t->text), VIEW_FMT, VIEW_ARG(problem));
	}
}

static int take_event(osb_terminal *t, const struct ws_event *event, const struct wire_limit *limit,
		      osb_terminal_event *ret, struct err *e)
{
	switch (event->kind) {
	case WS_EVENT_MESSAGE:
		if (event->opcode == WS_BINARY)
			take_output(t, event->data, ret);
		else
			take_text(t, event->data, ret);
		return 0;
	case WS_EVENT_PING:
		return send_frame(t, WS_PONG, event->data, limit, e);
	case WS_EVENT_CLOSE:
		if (event->data.len)
			snprintf(t->text, sizeof(t->text), VIEW_FMT, VIEW_ARG(event->data));
		ret->kind = OSB_TERMINAL_CLOSED;
		return 0;
	case WS_EVENT_BAD:
		return err_set(e, -EPROTO, "%s", event->reason);
	default:
		return 0;
	}
}

/* More bytes, or the end of all. */
static int read_more(osb_terminal *t, const struct wire_limit *limit, osb_terminal_event *ret,
		     struct err *e)
{
	char *room = ws_reader_room(&t->reader, READ_BYTES);
	ssize_t n;

	if (!room)
		return err_set(e, -EPROTO, "a message has no end");
	n = wire_read(t->wire, room, READ_BYTES, limit, e);
	if (n < 0)
		return (int)n;
	if (n == 0)
		ret->kind = OSB_TERMINAL_CLOSED;
	ws_reader_add(&t->reader, (size_t)n);
	return 0;
}

bool osb_terminal_pending(osb_terminal *t)
{
	if (!t->has_next)
		ws_reader_next(&t->reader, &t->next);
	t->has_next = t->next.kind != WS_EVENT_NONE;
	return t->has_next || wire_buffered(t->wire);
}

int osb_terminal_read(osb_terminal *t, const osb_call *call, osb_terminal_event *ret, osb_error *e)
{
	struct wire_limit limit = limit_of(t, call);
	struct err why = ERR_NONE;
	int r = 0;

	fail_none(e);
	*ret = (osb_terminal_event){.kind = OSB_TERMINAL_NOTHING, .text = t->text};
	if (!t->has_next)
		ws_reader_next(&t->reader, &t->next);
	t->has_next = false;
	if (t->next.kind == WS_EVENT_NONE) {
		r = read_more(t, &limit, ret, &why);
		if (r == 0 && ret->kind == OSB_TERMINAL_NOTHING)
			ws_reader_next(&t->reader, &t->next);
	}
	if (r == 0 && ret->kind == OSB_TERMINAL_NOTHING)
		r = take_event(t, &t->next, &limit, ret, &why);
	ret->offset = t->offset;
	return r < 0 ? fail_err(e, &why) : 0;
}

void osb_terminal_close(osb_terminal *t)
{
	struct wire_limit soon = {.deadline_us = clock_mono_us() + 100000};
	struct err ignored = ERR_NONE;

	if (!t)
		return;
	if (send_frame(t, WS_CLOSE, VIEW("\x03\xe8"), &soon, &ignored) < 0)
		wire_close(take_ptr(t->wire));
	wire_close(t->wire);
	ws_reader_done(&t->reader);
	free(t);
}
