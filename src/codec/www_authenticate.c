/*
 * codec/www_authenticate.c - schemes, and parameters that may look like schemes.
 *
 * Commas separate parameters as well as challenges: a word is a parameter when '=' follows it, and
 * the beginning of another challenge otherwise.
 */
#include "codec/www_authenticate.h"

#include <errno.h>

#include "base/arena.h"
#include "codec/http_char.h"

static void skip_blanks(struct view *in)
{
	while (in->len > 0 && (in->p[0] == ' ' || in->p[0] == '\t'))
		*in = view_skip(*in, 1);
}

static void skip_commas(struct view *in)
{
	while (in->len > 0 && (in->p[0] == ' ' || in->p[0] == '\t' || in->p[0] == ','))
		*in = view_skip(*in, 1);
}

static struct view take_token(struct view *in)
{
	size_t n = 0;
	struct view token;

	while (n < in->len && http_char_is(in->p[n], HTTP_TCHAR))
		n++;
	token = view_first(*in, n);
	*in = view_skip(*in, n);
	return token;
}

/* The opening quote is gone. */
static int take_quoted(struct arena *a, struct view *in, struct view *ret)
{
	char *text = arena_alloc(a, in->len + 1);
	size_t n = 0, i = 0;

	if (!text)
		return -E2BIG;
	for (; i < in->len && in->p[i] != '"'; i++) {
		if (in->p[i] == '\\' && ++i == in->len)
			return -EINVAL;
		if (!http_char_is(in->p[i], HTTP_FIELD))
			return -EINVAL;
		text[n++] = in->p[i];
	}
	if (i == in->len)
		return -EINVAL;
	*in = view_skip(*in, i + 1);
	*ret = view_mem(text, n);
	return 0;
}

static int take_value(struct arena *a, struct view *in, struct view *ret)
{
	struct view token;

	skip_blanks(in);
	if (in->len > 0 && in->p[0] == '"') {
		*in = view_skip(*in, 1);
		return take_quoted(a, in, ret);
	}
	token = take_token(in);
	return token.len == 0 ? -EINVAL : arena_view(a, token, ret);
}

static void keep(struct www_challenge *c, struct view name, struct view value)
{
	struct {
		const char *name;
		struct view *to;
	} known[] = {
		{"realm", &c->realm},
		{"service", &c->service},
		{"scope", &c->scope},
		{"error", &c->error},
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (view_iis(name, known[i].name) && known[i].to->len == 0)
			*known[i].to = value;
}

/* 1 = a parameter was taken, 0 = what follows is none. */
static int take_parameter(struct arena *a, struct view *in, struct www_challenge *c)
{
	struct view rest = *in, name, value;
	int r;

	skip_commas(&rest);
	name = take_token(&rest);
	skip_blanks(&rest);
	if (name.len == 0 || rest.len == 0 || rest.p[0] != '=')
		return 0;
	rest = view_skip(rest, 1);
	r = take_value(a, &rest, &value);
	if (r < 0)
		return r;
	keep(c, name, value);
	skip_blanks(&rest);
	if (rest.len > 0 && rest.p[0] != ',')
		return -EINVAL;
	*in = rest;
	return 1;
}

int www_authenticate_next(struct arena *a, struct view *rest, struct www_challenge *ret)
{
	struct www_challenge c = {0};
	struct view in = *rest;
	int r;

	skip_commas(&in);
	if (in.len == 0) {
		*rest = in;
		return 0;
	}
	c.scheme = take_token(&in);
	if (c.scheme.len == 0 || (in.len > 0 && in.p[0] != ' ' && in.p[0] != ','))
		return -EINVAL;
	do
		r = take_parameter(a, &in, &c);
	while (r > 0);
	if (r < 0)
		return r;
	/* Another challenge, or the end; anything else ("Scheme token68") is not for us. */
	skip_blanks(&in);
	if (in.len > 0 && in.p[0] != ',')
		return -EINVAL;
	*rest = in;
	*ret = c;
	return 1;
}

int www_authenticate_find(struct arena *a, struct view header, const char *scheme,
			  struct www_challenge *ret)
{
	struct www_challenge c;

	while (www_authenticate_next(a, &header, &c) > 0)
		if (view_iis(c.scheme, scheme)) {
			*ret = c;
			return 1;
		}
	return 0;
}
