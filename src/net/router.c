/*
 * net/router.c - matches paths segment by segment.
 */
#include "net/router.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "codec/url.h"
#include "net/http_server.h"

static bool is_param(struct view segment)
{
	return segment.len > 2 && segment.p[0] == '{';
}

static bool is_rest(struct view segment)
{
	return is_param(segment) && view_ends(segment, VIEW("...}"));
}

/* Literal segments that matched, or -1: the more, the better the match. */
static int match_path(const struct route *row, struct view path, struct route_match *m)
{
	struct view pattern = view_of(row->path), want, have;
	int literals = 0;

	m->params_n = 0;
	/* Both begin with '/'. */
	pattern = view_skip(pattern, 1);
	if (path.len == 0 || path.p[0] != '/')
		return -1;
	path = view_skip(path, 1);
	for (;;) {
		size_t end = view_find(pattern, '/'), cut = view_find(path, '/');

		want = view_first(pattern, end);
		have = view_first(path, cut);
		if (is_param(want)) {
			if (m->params_n == ROUTE_MAX_PARAMS)
				return -1;
			m->params[m->params_n] = want.p + 1;
			m->values[m->params_n++] = is_rest(want) ? path : have;
			if (is_rest(want))
				return literals;
			if (have.len == 0)
				return -1;
		} else {
			if (!view_eq(want, have))
				return -1;
			literals++;
		}
		if (end == pattern.len || cut == path.len)
			return end == pattern.len && cut == path.len ? literals : -1;
		pattern = view_skip(pattern, end + 1);
		path = view_skip(path, cut + 1);
	}
}

static bool method_matches(const struct route *row, struct view method)
{
	return strcmp(row->method, "*") == 0 || view_is(method, row->method) ||
	       (view_is(method, "HEAD") && strcmp(row->method, "GET") == 0);
}

static void add_allowed(struct route_match *m, const char *method)
{
	size_t len = strlen(m->allow);

	if (strstr(m->allow, method))
		return;
	snprintf(m->allow + len, sizeof(m->allow) - len, "%s%s", len ? ", " : "", method);
}

void route_find(const struct route *const *tables, struct view method, struct view path,
		struct route_match *ret)
{
	int best = -1;

	memset(ret, 0, sizeof(*ret));
	for (; *tables; tables++) {
		for (const struct route *row = *tables; row->method; row++) {
			struct route_match m;
			int literals = match_path(row, path, &m);

			if (literals < 0)
				continue;
			ret->path_known = true;
			add_allowed(ret, row->method);
			if (!method_matches(row, method) || literals <= best)
				continue;
			best = literals;
			ret->route = row;
			memcpy(ret->params, m.params, sizeof(m.params));
			memcpy(ret->values, m.values, sizeof(m.values));
			ret->params_n = m.params_n;
		}
	}
}

void route_dispatch(struct http_exchange *x, const struct route *const *tables, void *app)
{
	struct route_match *m = arena_alloc(http_arena(x), sizeof(*m));

	if (!m) {
		http_reply_error(x, 503, "SERVICE_UNAVAILABLE", "out of memory for this request");
		return;
	}
	route_find(tables, http_head(x)->method, http_path(x), m);
	http_set_user(x, m);
	if (m->route) {
		m->route->handler(x, app);
	} else if (m->path_known) {
		http_reply_header(x, "Allow", view_of(m->allow));
		http_reply_error(x, 405, "METHOD_NOT_ALLOWED", "this path takes %s", m->allow);
	} else {
		http_reply_error(x, 404, "NOT_FOUND", "there is no such path: " VIEW_FMT,
				 VIEW_ARG(view_first(http_path(x), 120)));
	}
}

struct view route_param(struct http_exchange *x, const char *name)
{
	const struct route_match *m = http_user(x);
	size_t len = strlen(name);

	for (size_t i = 0; m && i < m->params_n; i++) {
		struct view value;

		if (strncmp(m->params[i], name, len) != 0 ||
		    (m->params[i][len] != '}' && m->params[i][len] != '.'))
			continue;
		if (url_decode(http_arena(x), m->values[i], URL_PATH, &value) == 0)
			return value;
	}
	return VIEW_NONE;
}
