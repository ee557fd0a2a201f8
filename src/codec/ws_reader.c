/*
 * codec/ws_reader.c - frames become messages.
 */
#include "codec/ws_reader.h"

#include <errno.h>

#include "base/utf8.h"

#define UNREAD_MAX (256 * 1024)

void ws_reader_init(struct ws_reader *r, bool from_client, size_t message_max)
{
	*r = (struct ws_reader){.from_client = from_client, .message_max = message_max};
	buf_init(&r->in, UNREAD_MAX);
	buf_init(&r->msg, MAX(message_max, (size_t)1));
}

void ws_reader_done(struct ws_reader *r)
{
	buf_done(&r->in);
	buf_done(&r->msg);
	r->told = 0;
	r->msg_told = false;
}

void ws_reader_take(struct ws_reader *r, struct buf *bytes)
{
	buf_done(&r->in);
	r->in = *bytes;
	r->in.max = UNREAD_MAX + bytes->len;
	*bytes = (struct buf){0};
}

/* What the last event showed is used up. */
static void forget_told(struct ws_reader *r)
{
	buf_consume(&r->in, r->told);
	r->told = 0;
	if (r->msg_told)
		buf_done(&r->msg);
	r->msg_told = false;
}

char *ws_reader_room(struct ws_reader *r, size_t n)
{
	forget_told(r);
	return buf_reserve(&r->in, n);
}

void ws_reader_add(struct ws_reader *r, size_t n)
{
	buf_commit(&r->in, n);
}

void ws_reader_rest(struct ws_reader *r)
{
	forget_told(r);
	if (r->in.len == 0)
		buf_done(&r->in);
}

static bool bad(struct ws_event *ret, unsigned code, const char *reason)
{
	*ret = (struct ws_event){.kind = WS_EVENT_BAD, .code = code, .reason = reason};
	return true;
}

/* The functions below return true when *ret is an event, false to go on. */

static bool tell_message(struct ws_reader *r, struct view data, struct ws_event *ret)
{
	r->in_message = false;
	*ret = (struct ws_event){.kind = WS_EVENT_MESSAGE, .opcode = r->opcode, .data = data};
	return true;
}

static bool tell_close(struct view payload, struct ws_event *ret)
{
	struct view reason = view_skip(payload, 2);
	unsigned code = WS_CLOSE_NO_STATUS;

	if (payload.len >= 2)
		code = (unsigned)(unsigned char)payload.p[0] << 8 | (unsigned char)payload.p[1];
	if (payload.len == 1 || (payload.len >= 2 && !ws_close_code_valid(code)))
		return bad(ret, WS_CLOSE_PROTOCOL, "malformed close frame");
	if (!utf8_valid(reason))
		return bad(ret, WS_CLOSE_INVALID_DATA, "close reason is not UTF-8");
	*ret = (struct ws_event){.kind = WS_EVENT_CLOSE, .code = code, .data = reason};
	return true;
}

static bool tell_control(struct ws_reader *r, struct view payload, struct ws_event *ret)
{
	if (r->frame.opcode == WS_CLOSE)
		return tell_close(payload, ret);
	*ret = (struct ws_event){
		.kind = r->frame.opcode == WS_PING ? WS_EVENT_PING : WS_EVENT_PONG,
		.data = payload,
	};
	return true;
}

/* Checks what came since the last time; an incomplete character may only stand at the end. */
static bool text_good(struct ws_reader *r, bool final)
{
	struct view v = view_skip(buf_view(&r->msg), r->utf8_checked);
	size_t good = utf8_valid_prefix(v);

	if (good < v.len && utf8_next(view_skip(v, good), NULL) < 0)
		return false;
	r->utf8_checked += good;
	return !final || good == v.len;
}

static bool take_piece(struct ws_reader *r, struct view piece, bool frame_done,
		       struct ws_event *ret)
{
	bool final = frame_done && r->frame.fin;

	if (buf_append_view(&r->msg, piece) < 0)
		return bad(ret, WS_CLOSE_TOO_BIG, "message too big");
	if (r->opcode == WS_TEXT && !text_good(r, final))
		return bad(ret, WS_CLOSE_INVALID_DATA, "text is not UTF-8");
	if (!final)
		return false;
	r->msg_told = true;
	return tell_message(r, buf_view(&r->msg), ret);
}

static bool step_payload(struct ws_reader *r, struct ws_event *ret)
{
	uint64_t left = r->frame.length - r->frame_got;
	struct view piece = view_first(buf_view(&r->in), (size_t)MIN(left, (uint64_t)r->in.len));
	bool control = r->frame.opcode >= WS_CLOSE;
	bool done = piece.len == left;

	if (!done && (control || piece.len == 0)) {
		*ret = (struct ws_event){.kind = WS_EVENT_NONE};
		return true;
	}
	if (r->frame.masked)
		ws_mask(r->in.mem + r->in.start, piece.len, r->frame.mask, r->frame_got);
	r->frame_got += piece.len;
	r->in_frame = !done;
	r->told = piece.len;
	if (control)
		return tell_control(r, piece, ret);
	/* A whole message in the read buffer is shown where it lies. */
	if (done && r->frame.fin && r->msg.len == 0 && piece.len == r->frame.length) {
		if (r->opcode == WS_TEXT && !utf8_valid(piece))
			return bad(ret, WS_CLOSE_INVALID_DATA, "text is not UTF-8");
		return tell_message(r, piece, ret);
	}
	return take_piece(r, piece, done, ret);
}

static bool begin_data(struct ws_reader *r, struct ws_event *ret)
{
	const struct ws_frame *f = &r->frame;

	if (f->opcode == WS_CONT && !r->in_message)
		return bad(ret, WS_CLOSE_PROTOCOL, "a continuation of nothing");
	if (f->opcode != WS_CONT && r->in_message)
		return bad(ret, WS_CLOSE_PROTOCOL, "a message began inside another");
	if (f->length > r->message_max || r->msg.len + f->length > r->message_max)
		return bad(ret, WS_CLOSE_TOO_BIG, "message too big");
	if (f->opcode != WS_CONT) {
		r->opcode = f->opcode;
		r->utf8_checked = 0;
		r->in_message = true;
	}
	return false;
}

static bool step_header(struct ws_reader *r, struct ws_event *ret)
{
	int result = ws_frame_parse(buf_view(&r->in), r->from_client, &r->frame, &r->e);

	if (result < 0)
		return bad(ret, WS_CLOSE_PROTOCOL, r->e.msg);
	if (result == 0) {
		*ret = (struct ws_event){.kind = WS_EVENT_NONE};
		return true;
	}
	buf_consume(&r->in, r->frame.header_len);
	r->frame_got = 0;
	r->in_frame = true;
	return r->frame.opcode < WS_CLOSE && begin_data(r, ret);
}

void ws_reader_next(struct ws_reader *r, struct ws_event *ret)
{
	bool told = false;

	while (!told) {
		forget_told(r);
		told = r->in_frame ? step_payload(r, ret) : step_header(r, ret);
	}
}
