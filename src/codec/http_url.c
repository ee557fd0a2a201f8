/*
 * codec/http_url.c - takes absolute URLs apart.
 */
#include "codec/http_url.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "codec/url.h"

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_' || c == '.';
}

static bool is_name(struct view v)
{
	for (size_t i = 0; i < v.len; i++)
		if (!is_name_char(v.p[i]) || (v.p[i] == '.' && (i == 0 || v.p[i - 1] == '.')))
			return false;
	return v.len > 0;
}

static bool read_host(struct view text, bool brackets, struct http_url *ret)
{
	if (text.len == 0 || text.len >= sizeof(ret->host) || view_has(text, '\0'))
		return false;
	memcpy(ret->host, text.p, text.len);
	ret->host[text.len] = '\0';
	ret->v6 = brackets;
	ret->is_address = inet_pton(brackets ? AF_INET6 : AF_INET, ret->host, ret->address) == 1;
	if (ret->is_address || brackets)
		return ret->is_address;
	for (char *p = ret->host; *p; p++)
		if (*p >= 'A' && *p <= 'Z')
			*p = (char)(*p + ('a' - 'A'));
	return is_name(text);
}

/* "name", "name:port", "[address]", "[address]:port" */
static bool read_authority(struct view text, struct http_url *ret)
{
	bool brackets = view_starts(text, VIEW("["));
	struct view host = brackets ? view_skip(text, 1) : text;
	size_t end = view_find(host, brackets ? ']' : ':');
	struct view rest = view_skip(host, brackets ? end + 1 : end);
	uint32_t port = ret->tls ? 443 : 80;

	if (brackets && end == host.len)
		return false;
	if (rest.len && (rest.p[0] != ':' || !num_parse_u32(view_skip(rest, 1), &port)))
		return false;
	ret->port = (uint16_t)port;
	return port >= 1 && port <= UINT16_MAX && read_host(view_first(host, end), brackets, ret);
}

static size_t authority_len(struct view text)
{
	size_t n = 0;

	while (n < text.len && text.p[n] != '/' && text.p[n] != '?')
		n++;
	return n;
}

int http_url_parse(struct view text, struct http_url *ret, struct err *e)
{
	struct http_url u = {.tls = view_istarts(text, VIEW("https://"))};
	struct url_target whole;
	struct view rest;

	if (!u.tls && !view_istarts(text, VIEW("http://")))
		return err_set(e, -EINVAL, "the URL must begin with http:// or https://");
	rest = view_skip(text, u.tls ? 8 : 7);
	u.authority = view_first(rest, authority_len(rest));
	if (!read_authority(u.authority, &u))
		return err_set(e, -EINVAL, "the URL has no host, or none that can be called");
	u.target = view_skip(rest, u.authority.len);
	if (u.target.len == 0)
		u.target = VIEW("/");
	if (u.target.p[0] != '/')
		return err_set(e, -EINVAL, "the URL needs a path in front of its query");
	if (!url_target_parse(u.target, &whole))
		return err_set(e, -EINVAL, "the URL has characters that must be escaped");
	*ret = u;
	return 0;
}
