/*
 * codec/expand.c - "~", "$NAME" and "${NAME}": measured first, then written once.
 */
#include "codec/expand.h"

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"

enum piece_kind { PIECE_TEXT, PIECE_NAME, PIECE_BROKEN };

static bool starts_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static size_t name_len(struct view v)
{
	size_t n = 0;

	if (v.len == 0 || !starts_name(v.p[0]))
		return 0;
	while (n < v.len && (starts_name(v.p[n]) || (v.p[n] >= '0' && v.p[n] <= '9')))
		n++;
	return n;
}

/* Takes a run of plain text, a variable, or a "${" that is none off *rest, which is not empty. */
static enum piece_kind next_piece(struct view *rest, struct view *ret)
{
	struct view v = *rest;
	bool braced = v.len > 1 && v.p[1] == '{';
	size_t n;

	if (v.p[0] != '$') {
		*ret = view_first(v, view_find(v, '$'));
		*rest = view_skip(v, ret->len);
		return PIECE_TEXT;
	}
	n = name_len(view_skip(v, braced ? 2 : 1));
	*ret = view_first(view_skip(v, braced ? 2 : 1), n);
	if (n > 0 && !braced) {
		*rest = view_skip(v, 1 + n);
		return PIECE_NAME;
	}
	if (n > 0 && 2 + n < v.len && v.p[2 + n] == '}') {
		*rest = view_skip(v, 3 + n);
		return PIECE_NAME;
	}
	*ret = view_first(v, 1);
	*rest = view_skip(v, 1);
	return braced ? PIECE_BROKEN : PIECE_TEXT;
}

/* `e` is NULL where undefined variables are empty and broken ones stand for themselves. */
static int piece_value(enum piece_kind kind, struct view piece, expand_lookup_fn *lookup, void *arg,
		       struct view *ret, struct err *e)
{
	const char *value;

	*ret = piece;
	if (kind == PIECE_TEXT)
		return 0;
	if (kind == PIECE_BROKEN)
		return e ? err_set(e, -EINVAL, "'${' is not followed by a name and '}'") : 0;
	value = lookup(arg, piece);
	if (!value && e)
		return err_set(e, -EINVAL, "variable '" VIEW_FMT "' is not defined",
			       VIEW_ARG(piece));
	*ret = view_of(value);
	return 0;
}

/* The length of `prefix` and the expanded text; writes both to `to` unless that is NULL. */
static int walk(struct view prefix, struct view text, expand_lookup_fn *lookup, void *arg, char *to,
		size_t *ret_len, struct err *e)
{
	size_t len = prefix.len;

	if (to && prefix.len > 0)
		memcpy(to, prefix.p, prefix.len);
	while (text.len > 0) {
		struct view piece, value;
		enum piece_kind kind = next_piece(&text, &piece);
		int r = piece_value(kind, piece, lookup, arg, &value, e);

		if (r < 0)
			return r;
		if (to && value.len > 0)
			memcpy(to + len, value.p, value.len);
		len += value.len;
	}
	*ret_len = len;
	return 0;
}

static int expand(struct arena *a, struct view prefix, struct view text, expand_lookup_fn *lookup,
		  void *arg, struct view *ret, struct err *e)
{
	size_t len;
	char *to;
	int r;

	r = walk(prefix, text, lookup, arg, NULL, &len, e);
	if (r < 0)
		return r;
	to = arena_alloc(a, len + 1);
	if (!to)
		return -E2BIG;
	r = walk(prefix, text, lookup, arg, to, &len, e);
	if (r < 0)
		return r;
	*ret = view_mem(to, len);
	return 0;
}

int expand_path(struct arena *a, struct view text, const char *home, expand_lookup_fn *lookup,
		void *arg, struct view *ret, struct err *e)
{
	struct view prefix = VIEW_NONE;
	int r;

	if (text.len > 0 && text.p[0] == '~' && (text.len == 1 || text.p[1] == '/')) {
		if (!home)
			return err_set(e, -EINVAL, "'~' has no meaning: there is no home");
		prefix = view_of(home);
		text = view_skip(text, 1);
	}
	r = expand(a, prefix, text, lookup, arg, ret, e);
	return r == -E2BIG ? err_set(e, r, "the expanded path is too long") : r;
}

int expand_vars(struct arena *a, struct view text, expand_lookup_fn *lookup, void *arg,
		struct view *ret)
{
	return expand(a, VIEW_NONE, text, lookup, arg, ret, /* e= */ NULL);
}
