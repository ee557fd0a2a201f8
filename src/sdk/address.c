/*
 * sdk/address.c - see address.h.
 */
#include "sdk/address.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"

static bool copy(char *to, size_t size, struct view from)
{
	if (from.len >= size)
		return false;
	memcpy(to, from.p, from.len);
	to[from.len] = '\0';
	return true;
}

static bool is_clean(struct view v)
{
	for (size_t i = 0; i < v.len; i++)
		if ((unsigned char)v.p[i] <= ' ' || v.p[i] == 0x7f || v.p[i] == '#' ||
		    v.p[i] == '?' || v.p[i] == '@')
			return false;
	return true;
}

static int parse_unix(struct view path, struct address *ret, struct err *e)
{
	if (!view_starts(path, VIEW("/")) || !copy(ret->unix_path, sizeof(ret->unix_path), path))
		return err_set(e, -EINVAL,
			       "a unix socket is written unix:/path, of at most 107 characters");
	memcpy(ret->authority, "localhost", sizeof("localhost"));
	return 0;
}

/* "[::1]:80", "host:80", "host". */
static bool parse_authority(struct view v, struct address *ret)
{
	struct view host = v, port = VIEW_NONE;
	uint32_t n;

	if (view_starts(v, VIEW("["))) {
		size_t end = view_find(v, ']');

		host = view_first(view_skip(v, 1), end - 1);
		port = view_skip(v, end + 1);
		if (end == v.len || (port.len && port.p[0] != ':'))
			return false;
		port = view_skip(port, 1);
	} else if (view_has(v, ':')) {
		size_t colon = view_find(v, ':');

		host = view_first(v, colon);
		port = view_skip(v, colon + 1);
	}
	ret->port = ret->tls ? 443 : 80;
	if (port.len) {
		if (!num_parse_u32(port, &n) || n < 1 || n > UINT16_MAX)
			return false;
		ret->port = (uint16_t)n;
	}
	return host.len > 0 && copy(ret->host, sizeof(ret->host), host) &&
	       copy(ret->authority, sizeof(ret->authority), v);
}

int address_parse(struct view text, bool tls, struct address *ret, struct err *e)
{
	size_t slash;
	struct view base;

	*ret = (struct address){.tls = tls};
	text = view_trim(text);
	if (view_starts(text, VIEW("unix:")))
		return parse_unix(view_skip(text, 5), ret, e);
	if (view_istarts(text, VIEW("http://"))) {
		ret->tls = false;
		text = view_skip(text, 7);
	} else if (view_istarts(text, VIEW("https://"))) {
		ret->tls = true;
		text = view_skip(text, 8);
	} else if (view_find_view(text, VIEW("://")) < text.len) {
		return err_set(e, -EINVAL, "'" VIEW_FMT "': neither http nor https",
			       VIEW_ARG(view_first(text, 100)));
	}
	slash = view_find(text, '/');
	base = view_skip(text, slash);
	while (view_ends(base, VIEW("/")))
		base = view_first(base, base.len - 1);
	if (!is_clean(text) || !parse_authority(view_first(text, slash), ret) ||
	    !copy(ret->base, sizeof(ret->base), base))
		return err_set(e, -EINVAL, "'" VIEW_FMT "' is no address of a server",
			       VIEW_ARG(view_first(text, 100)));
	return 0;
}
