/*
 * mcp/web_guard.c - see web_guard.h.
 */
#include "mcp/web_guard.h"

#include <stddef.h>

#include "base/macro.h"
#include "base/num.h"

/* Cuts ":PORT" off; an empty view if it is none. */
static struct view without_port(struct view host)
{
	size_t end = view_starts(host, VIEW("[")) ? view_find(host, ']') + 1 : view_find(host, ':');
	struct view port = view_skip(host, end + 1);
	uint32_t n;

	if (end >= host.len)
		return host;
	return host.p[end] == ':' && num_parse_u32(port, &n) && n <= 65535 ? view_first(host, end)
									   : VIEW_NONE;
}

bool web_host_is_local(struct view host)
{
	static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};

	host = without_port(host);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (view_iis(host, names[i]))
			return true;
	return false;
}

bool web_origin_is_fine(struct view origin, const char *own)
{
	struct view host = VIEW_NONE;

	if (view_istarts(origin, VIEW("http://")))
		host = view_skip(origin, 7);
	else if (view_istarts(origin, VIEW("https://")))
		host = view_skip(origin, 8);
	return host.len && (web_host_is_local(host) || view_iis(without_port(host), own));
}
