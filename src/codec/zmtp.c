/*
 * codec/zmtp.c - ZMTP 3.0 (rfc.zeromq.org/spec/23).
 */
#include "codec/zmtp.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"

#define GREETING_BYTES	  64
#define MECHANISM_AT	  12
#define MECHANISM_BYTES	  20
#define FRAME_MORE	  1u
#define FRAME_LONG	  2u
#define FRAME_COMMAND	  4u
#define FRAME_HEAD_MAX	  9
#define COMMAND_MAX_BYTES 4096

void zmtp_reader_init(struct zmtp_reader *r, size_t message_max)
{
	*r = (struct zmtp_reader){.message_max = message_max};
	/* A frame's head may come together with the last bytes of a message. */
	buf_init(&r->in, message_max + GREETING_BYTES);
	buf_init(&r->msg, message_max);
}

void zmtp_reader_done(struct zmtp_reader *r)
{
	buf_done(&r->in);
	buf_done(&r->msg);
}

int zmtp_reader_add(struct zmtp_reader *r, struct view bytes)
{
	return buf_append_view(&r->in, bytes);
}

struct view zmtp_reader_part(const struct zmtp_reader *r, size_t i)
{
	size_t begin = i ? r->ends[i - 1] : 0;

	return view_first(view_skip(buf_view(&r->msg), begin), r->ends[i] - begin);
}

static enum zmtp_event bad(struct zmtp_reader *r, const char *why)
{
	(void)!err_set(&r->e, -EPROTO, "%s", why);
	r->state = ZMTP_BROKEN;
	return ZMTP_BAD;
}

static enum zmtp_event read_greeting(struct zmtp_reader *r)
{
	static const char null[MECHANISM_BYTES] = "NULL";
	const unsigned char *p = (const unsigned char *)buf_view(&r->in).p;

	if (r->in.len > 0 && p[0] != 0xff)
		return bad(r, "the peer does not speak ZMTP");
	if (r->in.len < GREETING_BYTES)
		return ZMTP_NONE;
	if (!(p[9] & 1) || p[10] < 3)
		return bad(r, "the peer speaks an older ZMTP than 3.0");
	if (memcmp(p + MECHANISM_AT, null, sizeof(null)) != 0)
		return bad(r, "the peer wants another mechanism than NULL");
	buf_consume(&r->in, GREETING_BYTES);
	r->state = ZMTP_HANDSHAKE;
	return ZMTP_READY; /* not told: the handshake follows */
}

struct frame {
	unsigned flags;
	size_t head, len;
};

/* 0: not all there yet; 1: *ret is the frame at the front; -1: refused. */
static int read_frame(struct zmtp_reader *r, struct frame *ret)
{
	const unsigned char *p = (const unsigned char *)buf_view(&r->in).p;
	uint64_t len;

	if (r->in.len < 2)
		return 0;
	ret->flags = p[0];
	ret->head = p[0] & FRAME_LONG ? FRAME_HEAD_MAX : 2;
	if (p[0] & ~(FRAME_MORE | FRAME_LONG | FRAME_COMMAND) ||
	    (p[0] & FRAME_COMMAND && p[0] & FRAME_MORE)) {
		bad(r, "a frame has flags that do not exist");
		return -1;
	}
	if (r->in.len < ret->head)
		return 0;
	len = p[0] & FRAME_LONG ? bytes_get_be64(p + 1) : p[1];
	if (len > (p[0] & FRAME_COMMAND ? COMMAND_MAX_BYTES : r->message_max - r->msg.len)) {
		bad(r, "a frame is too long");
		return -1;
	}
	ret->len = (size_t)len;
	return r->in.len - ret->head >= ret->len;
}

/* "\5READY..." is the handshake; other commands are nothing to us, but an error is an end. */
static enum zmtp_event take_command(struct zmtp_reader *r, struct view command)
{
	if (view_starts(command, VIEW("\5ERROR")))
		return bad(r, "the peer has refused the connection");
	if (r->state == ZMTP_TRAFFIC)
		return ZMTP_NONE;
	if (!view_starts(command, VIEW("\5READY")))
		return bad(r, "the peer does not finish the handshake");
	r->state = ZMTP_TRAFFIC;
	return ZMTP_READY;
}

static enum zmtp_event take_part(struct zmtp_reader *r, struct view part, bool more)
{
	if (r->state != ZMTP_TRAFFIC)
		return bad(r, "a message comes before the handshake");
	if (r->parts == ZMTP_PARTS_MAX || buf_append_view(&r->msg, part) < 0)
		return bad(r, "a message is too long");
	r->ends[r->parts++] = r->msg.len;
	r->told = !more;
	return more ? ZMTP_NONE : ZMTP_MESSAGE;
}

enum zmtp_event zmtp_reader_next(struct zmtp_reader *r)
{
	enum zmtp_event event = ZMTP_NONE;
	struct frame f;

	if (r->told) {
		buf_clear(&r->msg);
		r->parts = 0;
		r->told = false;
	}
	if (r->state == ZMTP_GREETING)
		event = read_greeting(r);
	if (r->state == ZMTP_BROKEN)
		return ZMTP_BAD;
	if (r->state == ZMTP_GREETING)
		return event;
	for (event = ZMTP_NONE; event == ZMTP_NONE;) {
		int got = read_frame(r, &f);
		struct view body;

		if (got <= 0)
			return got < 0 ? ZMTP_BAD : ZMTP_NONE;
		body = view_first(view_skip(buf_view(&r->in), f.head), f.len);
		event = f.flags & FRAME_COMMAND ? take_command(r, body)
						: take_part(r, body, f.flags & FRAME_MORE);
		buf_consume(&r->in, f.head + f.len);
	}
	return event;
}

static int put_frame(struct buf *out, unsigned flags, struct view body)
{
	unsigned char head[FRAME_HEAD_MAX] = {(unsigned char)flags, (unsigned char)body.len};
	size_t n = 2;

	if (body.len > UINT8_MAX) {
		head[0] |= FRAME_LONG;
		bytes_put_be64(head + 1, body.len);
		n = FRAME_HEAD_MAX;
	}
	return buf_append(out, head, n) < 0 || buf_append_view(out, body) < 0 ? -E2BIG : 0;
}

int zmtp_put_part(struct buf *out, struct view part, bool more)
{
	return put_frame(out, more ? FRAME_MORE : 0, part);
}

int zmtp_put_hello(struct buf *out, const char *type)
{
	static const unsigned char greeting[GREETING_BYTES] = {
		0xff, [9] = 0x7f, [10] = 3, [MECHANISM_AT] = 'N', 'U', 'L', 'L'};
	size_t len = strlen(type);
	struct buf ready = BUF_INIT(COMMAND_MAX_BYTES);
	int r;

	r = buf_append(out, greeting, sizeof(greeting));
	if (r == 0)
		r = buf_append_view(&ready, VIEW("\5READY\13Socket-Type\0\0\0"));
	if (r == 0)
		r = buf_append_char(&ready, (char)len);
	if (r == 0)
		r = buf_append(&ready, type, len);
	if (r == 0)
		r = put_frame(out, FRAME_COMMAND, buf_view(&ready));
	buf_done(&ready);
	return r;
}
