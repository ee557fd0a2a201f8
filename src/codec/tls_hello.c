/*
 * codec/tls_hello.c - reads records and the ClientHello in them (RFC 8446, 4.1.2 and 5.1; names:
 * RFC 6066, 3).  Lengths are believed only as far as there are bytes.
 */
#include "codec/tls_hello.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"

enum { RECORD_HANDSHAKE = 22, HANDSHAKE_CLIENT_HELLO = 1, EXTENSION_NAME = 0, NAME_HOST = 0 };

#define RECORD_MAX 16384

/* ---- numbers and vectors ---- */

static bool take_number(struct view *in, size_t bytes, size_t *ret)
{
	if (in->len < bytes)
		return false;
	*ret = 0;
	for (size_t i = 0; i < bytes; i++)
		*ret = *ret << 8 | (unsigned char)in->p[i];
	*in = view_skip(*in, bytes);
	return true;
}

/* A run of bytes behind its length, which takes `bytes` bytes. */
static bool take_vector(struct view *in, size_t bytes, struct view *ret)
{
	size_t len;

	if (!take_number(in, bytes, &len) || len > in->len)
		return false;
	*ret = view_first(*in, len);
	*in = view_skip(*in, len);
	return true;
}

/* ---- the message ---- */

static bool read_host(struct view host, struct tls_hello *ret)
{
	if (host.len && host.p[host.len - 1] == '.')
		host = view_first(host, host.len - 1);
	if (host.len == 0 || host.len >= sizeof(ret->name))
		return false;
	for (size_t i = 0; i < host.len; i++) {
		char c = host.p[i];

		if (c >= 'A' && c <= 'Z')
			c = (char)(c + ('a' - 'A'));
		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
		      c == '.'))
			return false;
		ret->name[i] = c;
	}
	ret->name[host.len] = '\0';
	return true;
}

static bool read_names(struct view in, struct tls_hello *ret)
{
	struct view list, host;
	size_t kind;

	if (!take_vector(&in, 2, &list) || in.len)
		return false;
	while (list.len) {
		if (!take_number(&list, 1, &kind) || !take_vector(&list, 2, &host))
			return false;
		/* One name of each kind; two would let server and filter read different ones. */
		if (kind == NAME_HOST && (ret->name[0] || !read_host(host, ret)))
			return false;
	}
	return true;
}

static bool read_extensions(struct view in, struct tls_hello *ret)
{
	bool named = false;

	while (in.len) {
		struct view body;
		size_t kind;

		if (!take_number(&in, 2, &kind) || !take_vector(&in, 2, &body))
			return false;
		if (kind != EXTENSION_NAME)
			continue;
		if (named || !read_names(body, ret))
			return false;
		named = true;
	}
	return true;
}

static int read_hello(struct view in, struct tls_hello *ret)
{
	struct view session, ciphers, compressions, extensions;

	ret->name[0] = '\0';
	if (in.len < 34)
		return -EINVAL;
	in = view_skip(in, 34); /* version and random */
	if (!take_vector(&in, 1, &session) || session.len > 32 || !take_vector(&in, 2, &ciphers) ||
	    !take_vector(&in, 1, &compressions))
		return -EINVAL;
	if (in.len == 0)
		return 1; /* before there were extensions */
	if (!take_vector(&in, 2, &extensions) || in.len || !read_extensions(extensions, ret))
		return -EINVAL;
	return 1;
}

/* ---- records ---- */

bool tls_hello_begins(unsigned char first)
{
	return first == RECORD_HANDSHAKE;
}

/* The whole message, if its bytes are there. */
static int read_message(struct view bytes, struct tls_hello *ret)
{
	struct view message = bytes, body;
	size_t kind, len;

	if (bytes.len && bytes.p[0] != HANDSHAKE_CLIENT_HELLO)
		return -EINVAL;
	if (!take_number(&message, 1, &kind) || !take_number(&message, 3, &len))
		return 0;
	if (len > TLS_HELLO_MAX)
		return -EINVAL;
	if (message.len < len)
		return 0;
	body = view_first(message, len);
	return read_hello(body, ret);
}

int tls_hello_parse(struct view in, struct tls_hello *ret)
{
	osb_cleanup(buf_done) struct buf joined = BUF_INIT(TLS_HELLO_MAX);
	size_t all = in.len;

	for (;;) {
		size_t kind, version, len;
		int r;

		if (in.len && (unsigned char)in.p[0] != RECORD_HANDSHAKE)
			return -EINVAL;
		if (in.len > 1 && in.p[1] != 3)
			return -EINVAL;
		if (!take_number(&in, 1, &kind) || !take_number(&in, 2, &version) ||
		    !take_number(&in, 2, &len))
			return all >= TLS_HELLO_MAX ? -EINVAL : 0;
		if (len == 0 || len > RECORD_MAX)
			return -EINVAL;
		/* Most messages are in one record, and need no copy. */
		if (joined.len == 0 && in.len >= len) {
			r = read_message(view_first(in, len), ret);
			if (r != 0)
				return r;
		}
		if (in.len < len)
			return all >= TLS_HELLO_MAX ? -EINVAL : 0;
		if (buf_append(&joined, in.p, len) < 0)
			return -EINVAL;
		in = view_skip(in, len);
		r = read_message(buf_view(&joined), ret);
		if (r != 0)
			return r;
	}
}
