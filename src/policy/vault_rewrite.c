/*
 * policy/vault_rewrite.c - secrets into requests, and out of answers.
 *
 * Texts are searched once, from the front, and the longest of the texts that stand at a place is
 * replaced: what was put in is not looked at again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "codec/http1.h"
#include "codec/json_writer.h"
#include "codec/url.h"
#include "policy/vault_int.h"

#define CODED_MAX (8u * VAULT_SECRET_MAX) /* escapes take six bytes for one */

/* ---- search and replace ---- */

#define NEEDLES_MAX (3 * VAULT_LIST_MAX)

struct needles {
	struct {
		struct view text, value;
	} v[NEEDLES_MAX];
	size_t n;
	bool begins[256];
};

static void needles_add(struct needles *all, struct view text, struct view value)
{
	if (text.len == 0 || all->n == NEEDLES_MAX)
		return;
	for (size_t i = 0; i < all->n; i++)
		if (view_eq(all->v[i].text, text))
			return;
	all->v[all->n].text = text;
	all->v[all->n++].value = value;
	all->begins[(unsigned char)text.p[0]] = true;
}

/* The longest that stands at the front of `in`, or all->n. */
static size_t needle_at(const struct needles *all, struct view in)
{
	size_t best = all->n;

	for (size_t i = 0; i < all->n; i++)
		if (view_starts(in, all->v[i].text) &&
		    (best == all->n || all->v[i].text.len > all->v[best].text.len))
			best = i;
	return best;
}

/* 1 = something was replaced, 0 = nothing was, and `out` has a copy all the same. */
static int replace(const struct needles *all, struct view in, struct buf *out)
{
	size_t plain = 0, at = 0;
	int changed = 0;

	while (at < in.len) {
		size_t i = all->begins[(unsigned char)in.p[at]] ? needle_at(all, view_skip(in, at))
								: all->n;

		if (i == all->n) {
			at++;
			continue;
		}
		if (buf_append(out, in.p + plain, at - plain) < 0 ||
		    buf_append_view(out, all->v[i].value) < 0)
			return -E2BIG;
		at += all->v[i].text.len;
		plain = at;
		changed = 1;
	}
	if (at > plain && buf_append(out, in.p + plain, at - plain) < 0)
		return -E2BIG;
	return changed;
}

/* ---- codings ---- */

static int encode(struct buf *out, struct view text, enum vault_coding coding)
{
	switch (coding) {
	case VAULT_URL:
		return url_encode(out, text, /* keep_slash= */ false);
	case VAULT_FORM:
		for (size_t i = 0; i < text.len; i++) {
			struct view c = {text.p + i, 1};
			int r = *c.p == ' ' ? buf_append_char(out, '+') : url_encode(out, c, false);

			if (r < 0)
				return r;
		}
		return 0;
	case VAULT_JSON:
		return json_escape(out, text);
	case VAULT_RAW:
	case VAULT_CODINGS_:
		break;
	}
	return buf_append_view(out, text);
}

static int encoded(const char *text, enum vault_coding coding, char **ret, size_t *ret_len)
{
	struct buf out = BUF_SECRET(CODED_MAX);
	int r = encode(&out, view_of(text), coding);

	if (r == 0) {
		*ret_len = out.len;
		*ret = buf_take_str(&out);
	}
	buf_done(&out);
	return r;
}

/* ---- rendering ---- */

static void redact_too(struct vault *v, const char *text, size_t len)
{
	for (size_t i = 0; i < v->redactions_n; i++)
		if (v->redactions[i].text_len == len &&
		    memcmp(v->redactions[i].text, text, len) == 0)
			return;
	if ((v->redactions_n & (v->redactions_n - 1)) == 0)
		v->redactions = mem_resize(v->redactions, v->redactions_n ? v->redactions_n * 2 : 1,
					   sizeof(*v->redactions));
	v->redactions[v->redactions_n++] =
		(struct vault_needle){.text = mem_strndup(text, len), .text_len = len};
	v->redacted[(unsigned char)text[0]] = true;
}

static int redact_every_form(struct vault *v, const char *value, struct err *e)
{
	for (int coding = VAULT_RAW; coding < VAULT_CODINGS_; coding++) {
		size_t len;
		char *text;

		if (encoded(value, (enum vault_coding)coding, &text, &len) < 0)
			return err_set(e, -EINVAL, "a credential's value is too long");
		redact_too(v, text, len);
		vault_wipe(text);
	}
	return 0;
}

static int render_header(struct vault *v, struct vault_binding *b, struct vault_injection *h,
			 struct err *e)
{
	const struct vault_credential *c = vault_find_credential(v, h->credential);
	const char *prefix = b->auth == VAULT_BEARER  ? "Bearer "
			     : b->auth == VAULT_BASIC ? "Basic "
						      : "";

	h->value = mem_printf("%s%s", prefix, c->value);
	if (!http1_is_field_value(view_of(h->value)))
		return err_set(e, -EINVAL,
			       "binding \"%.64s\": the value of credential \"%.64s\" cannot be "
			       "sent as a header",
			       b->name, c->name);
	redact_too(v, h->value, strlen(h->value));
	return redact_every_form(v, c->value, e);
}

static int render_substitution(struct vault *v, struct vault_binding *b,
			       struct vault_substitution *s, struct err *e)
{
	const struct vault_credential *c = vault_find_credential(v, s->credential);

	for (int coding = VAULT_RAW; coding < VAULT_CODINGS_; coding++) {
		struct vault_needle *n = &s->needles[coding];

		if (encoded(s->placeholder, (enum vault_coding)coding, &n->text, &n->text_len) <
			    0 ||
		    encoded(c->value, (enum vault_coding)coding, &n->value, &n->value_len) < 0)
			return err_set(e, -EINVAL, "a credential's value is too long");
	}
	if ((s->in & VAULT_IN_HEADER) && !http1_is_field_value(view_of(c->value)))
		return err_set(e, -EINVAL,
			       "binding \"%.64s\": the value of credential \"%.64s\" cannot stand "
			       "in a header",
			       b->name, c->name);
	/* Whoever sees the placeholder in an answer knows what to send to have it replaced. */
	if (redact_every_form(v, s->placeholder, e) < 0)
		return e->code;
	return redact_every_form(v, c->value, e);
}

static int longest_first(const void *a, const void *b)
{
	size_t x = ((const struct vault_needle *)a)->text_len;
	size_t y = ((const struct vault_needle *)b)->text_len;

	return x < y ? 1 : x > y ? -1 : 0;
}

int vault_render(struct vault *v, struct err *e)
{
	size_t substitutions = 0;

	for (size_t i = 0; i < v->bindings_n; i++)
		substitutions += v->bindings[i].substitutions_n;
	if (substitutions > VAULT_SUBSTITUTIONS_MAX)
		return err_set(e, -EINVAL, "more than %d substitutions in all bindings",
			       VAULT_SUBSTITUTIONS_MAX);
	for (size_t i = 0; i < v->bindings_n; i++) {
		struct vault_binding *b = &v->bindings[i];

		for (size_t k = 0; k < b->injections_n; k++)
			if (render_header(v, b, &b->injections[k], e) < 0)
				return e->code;
		for (size_t k = 0; k < b->substitutions_n; k++)
			if (render_substitution(v, b, &b->substitutions[k], e) < 0)
				return e->code;
	}
	if (v->redactions_n)
		qsort(v->redactions, v->redactions_n, sizeof(*v->redactions), longest_first);
	return 0;
}

/* ---- requests ---- */

static struct view text_of(const struct vault_substitution *s, enum vault_coding coding)
{
	return view_mem(s->needles[coding].text, s->needles[coding].text_len);
}

/* The placeholder as it is written, or as the place demands it; the value always the latter. */
static void collect(const struct vault_binding *b, enum vault_place place, enum vault_coding coding,
		    struct needles *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < b->substitutions_n; i++) {
		const struct vault_substitution *s = &b->substitutions[i];
		const struct vault_needle *n = &s->needles[coding];

		if (!(s->in & place))
			continue;
		needles_add(ret, text_of(s, VAULT_RAW), view_mem(n->value, n->value_len));
		needles_add(ret, text_of(s, coding), view_mem(n->value, n->value_len));
		if (coding == VAULT_FORM)
			needles_add(ret, text_of(s, VAULT_URL), view_mem(n->value, n->value_len));
	}
}

static int check_path(const struct vault *v, const struct vault_binding *b,
		      const struct vault_request *q, struct view path, struct err *e)
{
	struct vault_request changed = *q;
	const struct vault_binding *found = b;
	enum vault_verdict verdict;

	changed.path = path;
	verdict = vault_match(v, &changed, &found);
	if (verdict == VAULT_AMBIGUOUS || found != b ||
	    (vault_path_slippery(path) && !vault_path_slippery(q->path)))
		return err_set(e, -EACCES, "the path is another one's with the credential in it");
	return 0;
}

int vault_rewrite_target(const struct vault *v, const struct vault_binding *b,
			 const struct vault_request *q, struct view target, struct buf *out,
			 struct err *e)
{
	size_t end = view_find(target, '?'), start = out->len;
	struct needles all;
	int changed;

	collect(b, VAULT_IN_PATH, VAULT_URL, &all);
	changed = replace(&all, view_first(target, end), out);
	if (changed < 0)
		return err_set(e, -E2BIG, "the request target is too long");
	if (changed && check_path(v, b, q, view_skip(buf_view(out), start), e) < 0)
		return e->code;
	collect(b, VAULT_IN_QUERY, VAULT_URL, &all);
	if (end < target.len &&
	    (buf_append_char(out, '?') < 0 || replace(&all, view_skip(target, end + 1), out) < 0))
		return err_set(e, -E2BIG, "the request target is too long");
	return 0;
}

int vault_rewrite_header(const struct vault_binding *b, struct view name, struct view value,
			 struct buf *out)
{
	size_t start = out->len;
	struct needles all;
	int r;

	collect(b, VAULT_IN_HEADER, VAULT_RAW, &all);
	if (all.n == 0 || vault_header_reserved(name) || http1_hop_by_hop(name))
		return 0;
	r = replace(&all, value, out);
	if (r > 0 && !http1_is_field_value(view_skip(buf_view(out), start)))
		r = -EINVAL;
	if (r <= 0)
		buf_truncate(out, start);
	return r < 0 ? -EINVAL : r;
}

enum vault_body vault_body_kind(const struct vault_binding *b, struct view content_type,
				struct view content_encoding)
{
	struct view type = vault_trim(view_first(content_type, view_find(content_type, ';')));
	bool wanted = false;

	for (size_t i = 0; i < b->substitutions_n; i++)
		wanted |= (b->substitutions[i].in & VAULT_IN_BODY) != 0;
	content_encoding = vault_trim(content_encoding);
	if (!wanted || (content_encoding.len && !view_iis(content_encoding, "identity")) ||
	    view_istarts(type, VIEW("multipart/")))
		return VAULT_BODY_NONE;
	if (view_iis(type, "application/x-www-form-urlencoded"))
		return VAULT_BODY_FORM;
	if (view_iis(type, "application/json") ||
	    (type.len > 5 && view_iis(view_skip(type, type.len - 5), "+json")))
		return VAULT_BODY_JSON;
	return VAULT_BODY_TEXT;
}

int vault_rewrite_body(const struct vault_binding *b, enum vault_body kind, struct view body,
		       struct buf *out)
{
	struct needles all;

	collect(b, VAULT_IN_BODY,
		kind == VAULT_BODY_FORM	  ? VAULT_FORM
		: kind == VAULT_BODY_JSON ? VAULT_JSON
					  : VAULT_RAW,
		&all);
	return replace(&all, body, out) < 0 ? -E2BIG : 0;
}

size_t vault_headers(const struct vault_binding *b)
{
	return b->injections_n;
}

struct view vault_header_name(const struct vault_binding *b, size_t i)
{
	return view_of(b->injections[i].name);
}

struct view vault_header_value(const struct vault_binding *b, size_t i)
{
	return view_of(b->injections[i].value);
}

/* ---- answers ---- */

#define ESCAPES_MAX 3 /* of escapes */

static const struct vault_needle *redaction_at(const struct vault *v, struct view in)
{
	if (!v->redacted[(unsigned char)*in.p])
		return NULL;
	for (size_t i = 0; i < v->redactions_n; i++)
		if (v->redactions[i].text_len <= in.len &&
		    memcmp(v->redactions[i].text, in.p, v->redactions[i].text_len) == 0)
			return &v->redactions[i];
	return NULL;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* With its escapes undone, as often as servers do that. */
static bool hides_secret(const struct vault *v, struct view value, int times)
{
	bool found = false;
	size_t n = 0;
	char *text;

	if (times == 0 || !view_has(value, '%'))
		return false;
	text = mem_alloc(value.len);
	for (size_t i = 0; i < value.len; i++) {
		bool escape = value.p[i] == '%' && i + 2 < value.len &&
			      digit(value.p[i + 1]) >= 0 && digit(value.p[i + 2]) >= 0;

		text[n++] = value.p[i];
		if (escape) {
			text[n - 1] = (char)(digit(value.p[i + 1]) << 4 | digit(value.p[i + 2]));
			i += 2;
		}
	}
	for (size_t i = 0; i < n && !found; i++)
		found = redaction_at(v, view_mem(text + i, n - i)) != NULL;
	found = found || hides_secret(v, view_mem(text, n), times - 1);
	explicit_bzero(text, n);
	free(text);
	return found;
}

/* Matches may overlap: whatever is part of any does not pass. */
static int redact(const struct vault *v, struct view value, struct buf *out)
{
	size_t until = 0; /* all before it has been written, or is covered */
	int changed = 0;

	for (size_t at = 0; at < value.len; at++) {
		const struct vault_needle *n = redaction_at(v, view_skip(value, at));

		if (!n)
			continue;
		if (at >= until && (buf_append(out, value.p + until, at - until) < 0 ||
				    buf_append_str(out, VAULT_REDACTED) < 0))
			return -E2BIG;
		until = MAX(until, at + n->text_len);
		changed = 1;
	}
	if (changed && buf_append(out, value.p + until, value.len - until) < 0)
		return -E2BIG;
	return changed;
}

/* Servers escape more than we do, or less, or in lower case: then nothing of it passes. */
int vault_redact(const struct vault *v, struct view value, struct buf *out)
{
	size_t start = out->len;
	int changed = v ? redact(v, value, out) : 0;

	if (!v || changed < 0 ||
	    !hides_secret(v, changed ? view_skip(buf_view(out), start) : value, ESCAPES_MAX))
		return changed;
	buf_truncate(out, start);
	return buf_append_str(out, VAULT_REDACTED) < 0 ? -E2BIG : 1;
}
