/*
 * codec/ws.c - WebSocket frames (RFC 6455), without sockets.
 */
#include "codec/ws.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"
#include "codec/base64.h"
#include "codec/sha1.h"

#define CONTROL_MAX 125

static bool is_control(unsigned opcode)
{
	return opcode >= WS_CLOSE;
}

/* The first two bytes: what can be refused before the rest has come. */
static int check_start(unsigned char b0, unsigned char b1, bool from_client, struct err *e)
{
	unsigned opcode = b0 & 15u;
	bool masked = (b1 & 0x80) != 0;

	if (b0 & 0x70)
		return err_set(e, -EPROTO, "a reserved bit is set without an extension");
	if ((opcode > WS_BINARY && opcode < WS_CLOSE) || opcode > WS_PONG)
		return err_set(e, -EPROTO, "opcode %u is reserved", opcode);
	if (is_control(opcode) && !(b0 & 0x80))
		return err_set(e, -EPROTO, "a control frame is fragmented");
	if (is_control(opcode) && (b1 & 0x7f) > CONTROL_MAX)
		return err_set(e, -EPROTO, "a control frame is longer than %d bytes", CONTROL_MAX);
	if (masked != from_client)
		return err_set(e, -EPROTO,
			       masked ? "a server's frame is masked"
				      : "a client's frame is not masked");
	return 0;
}

/* The payload length; its bytes begin at p[1].  Returns false when it could be shorter. */
static bool read_length(const unsigned char *p, uint64_t *ret)
{
	unsigned small = p[1] & 0x7f;

	if (small < 126) {
		*ret = small;
		return true;
	}
	if (small == 126) {
		*ret = (uint64_t)p[2] << 8 | p[3];
		return *ret > 125;
	}
	*ret = bytes_get_be64(p + 2);
	return *ret > UINT16_MAX && *ret <= INT64_MAX;
}

int ws_frame_parse(struct view in, bool from_client, struct ws_frame *ret, struct err *e)
{
	const unsigned char *p = (const unsigned char *)in.p;
	struct ws_frame f = {0};
	int r;

	if (in.len < 2)
		return 0;
	r = check_start(p[0], p[1], from_client, e);
	if (r < 0)
		return r;

	f.fin = (p[0] & 0x80) != 0;
	f.opcode = (enum ws_opcode)(p[0] & 15);
	f.masked = from_client;
	f.header_len = (p[1] & 0x7f) == 126 ? 4 : (p[1] & 0x7f) == 127 ? 10 : 2;
	if (in.len < f.header_len)
		return 0;
	if (!read_length(p, &f.length))
		return err_set(e, -EPROTO, "a frame's length is not written in its shortest form");
	if (f.masked) {
		if (in.len < f.header_len + 4)
			return 0;
		memcpy(f.mask, p + f.header_len, 4);
		f.header_len += 4;
	}
	*ret = f;
	return 1;
}

void ws_mask(char *p, size_t n, const unsigned char mask[4], uint64_t offset)
{
	unsigned char turned[8];
	uint64_t wide;
	size_t i;

	for (i = 0; i < sizeof(turned); i++)
		turned[i] = mask[(offset + i) & 3];
	memcpy(&wide, turned, sizeof(wide));
	for (i = 0; i + 8 <= n; i += 8) {
		uint64_t word;

		memcpy(&word, p + i, sizeof(word));
		word ^= wide;
		memcpy(p + i, &word, sizeof(word));
	}
	for (; i < n; i++)
		p[i] = (char)(p[i] ^ turned[i & 7]);
}

int ws_frame_format(struct buf *out, bool fin, enum ws_opcode opcode, uint64_t length,
		    const unsigned char *mask)
{
	unsigned char head[WS_HEADER_MAX];
	size_t n = 2;

	head[0] = (unsigned char)((fin ? 0x80 : 0) | opcode);
	if (length < 126) {
		head[1] = (unsigned char)length;
	} else if (length <= UINT16_MAX) {
		head[1] = 126;
		head[n++] = (unsigned char)(length >> 8);
		head[n++] = (unsigned char)length;
	} else {
		head[1] = 127;
		bytes_put_be64(head + n, length);
		n += 8;
	}
	if (mask) {
		head[1] |= 0x80;
		memcpy(head + n, mask, 4);
		n += 4;
	}
	return buf_append(out, head, n);
}

void ws_accept_key(struct view key, char ret[29])
{
	static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	char text[WS_KEY_LEN + sizeof(guid) - 1];
	unsigned char hash[SHA1_BYTES];
	size_t n = key.len < WS_KEY_LEN ? key.len : WS_KEY_LEN;

	if (n > 0)
		memcpy(text, key.p, n);
	memcpy(text + n, guid, sizeof(guid) - 1);
	sha1(view_mem(text, n + sizeof(guid) - 1), hash);
	base64_format(hash, sizeof(hash), ret);
}

bool ws_key_valid(struct view key)
{
	unsigned char nonce[16];

	return key.len == WS_KEY_LEN && base64_parse(key, nonce, sizeof(nonce)) == sizeof(nonce);
}

bool ws_close_code_valid(unsigned code)
{
	if (code >= 3000 && code <= 4999)
		return true;
	return code >= 1000 && code <= 1014 && code != 1004 && code != WS_CLOSE_NO_STATUS &&
	       code != WS_CLOSE_ABNORMAL;
}

bool ws_close_parse(struct view payload, unsigned *ret_code, struct view *ret_reason)
{
	const unsigned char *p = (const unsigned char *)payload.p;
	unsigned code;

	if (payload.len == 0) {
		*ret_code = WS_CLOSE_NO_STATUS;
		*ret_reason = VIEW_NONE;
		return true;
	}
	if (payload.len == 1)
		return false;
	code = (unsigned)p[0] << 8 | p[1];
	if (!ws_close_code_valid(code))
		return false;
	*ret_code = code;
	*ret_reason = view_skip(payload, 2);
	return true;
}
