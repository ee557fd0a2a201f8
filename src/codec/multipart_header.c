/*
 * codec/multipart_header.c - the headers of one part of a form (RFC 7578, 4.2), and its boundary.
 *
 * Only Content-Disposition means anything.  A part whose bytes would need decoding is refused
 * rather than stored encoded.
 */
#include "codec/multipart_header.h"

#include <errno.h>

#include "base/err.h"
#include "base/hex.h"
#include "codec/http1.h"
#include "codec/http_char.h"
#include "codec/multipart.h"

/* A cursor over writable text. */
struct cursor {
	char *p, *end;
};

static void skip_blanks(struct cursor *c)
{
	while (c->p < c->end && (*c->p == ' ' || *c->p == '\t'))
		c->p++;
}

static struct view take_token(struct cursor *c)
{
	char *start = c->p;

	while (c->p < c->end && http_char_is(*c->p, HTTP_TCHAR))
		c->p++;
	return view_mem(start, (size_t)(c->p - start));
}

/*
 * A quoted string, unescaped in place; the cursor stands behind its first quote.  A backslash
 * escapes a quote or a backslash only: browsers send those of Windows paths bare.
 */
static bool take_quoted(struct cursor *c, struct view *ret)
{
	char *start = c->p, *out = c->p;

	for (; c->p < c->end; c->p++) {
		if (*c->p == '"') {
			c->p++;
			*ret = view_mem(start, (size_t)(out - start));
			return true;
		}
		if (*c->p == '\\' && c->end - c->p > 1 && (c->p[1] == '"' || c->p[1] == '\\'))
			c->p++;
		*out++ = *c->p;
	}
	return false;
}

/* The next "; name=value".  1 = a parameter, 0 = the end, -1 = malformed. */
static int next_param(struct cursor *c, struct view *ret_name, struct view *ret_value)
{
	skip_blanks(c);
	if (c->p == c->end)
		return 0;
	if (*c->p++ != ';')
		return -1;
	skip_blanks(c);
	if (c->p == c->end)
		return 0;
	*ret_name = take_token(c);
	if (ret_name->len == 0 || c->p == c->end || *c->p++ != '=')
		return -1;
	if (c->p < c->end && *c->p == '"') {
		c->p++;
		return take_quoted(c, ret_value) ? 1 : -1;
	}
	*ret_value = take_token(c);
	return ret_value->len > 0 ? 1 : -1;
}

/* "UTF-8'language'percent-encoded" (RFC 8187), decoded in place. */
static bool decode_extended(struct view *value)
{
	struct view charset, language, rest = *value;
	char *start, *out;

	if (!view_split(&rest, '\'', &charset) || !view_split(&rest, '\'', &language))
		return false;
	if (!view_iis(charset, "utf-8"))
		return false;
	start = out = (char *)rest.p;
	for (size_t i = 0; i < rest.len; i++) {
		int high, low;

		if (rest.p[i] != '%') {
			*out++ = rest.p[i];
			continue;
		}
		if (rest.len - i < 3)
			return false;
		high = hex_digit(rest.p[i + 1]);
		low = hex_digit(rest.p[i + 2]);
		if (high < 0 || low < 0 || (high | low) == 0)
			return false;
		*out++ = (char)(high << 4 | low);
		i += 2;
	}
	*value = view_mem(start, (size_t)(out - start));
	return true;
}

static int once(bool *seen, const char *what, struct err *e)
{
	if (*seen)
		return err_set(e, -EINVAL, "a part's %s is there twice", what);
	*seen = true;
	return 0;
}

struct disposition {
	bool has_name, has_extended;
	struct view extended;
};

static int read_param(struct view name, struct view value, struct disposition *d,
		      struct multipart_part *ret, struct err *e)
{
	int r = 0;

	if (view_iis(name, "name")) {
		r = once(&d->has_name, "name", e);
		ret->name = value;
	} else if (view_iis(name, "filename")) {
		r = once(&ret->has_filename, "filename", e);
		ret->filename = value;
	} else if (view_iis(name, "filename*")) {
		r = once(&d->has_extended, "filename*", e);
		d->extended = value;
	}
	return r;
}

static int read_disposition(char *text, size_t len, struct multipart_part *ret, struct err *e)
{
	struct cursor c = {text, text + len};
	struct disposition d = {0};
	struct view name, value;
	int r;

	if (!view_iis(take_token(&c), "form-data"))
		return err_set(e, -EINVAL, "a part's Content-Disposition is not form-data");
	while ((r = next_param(&c, &name, &value)) > 0) {
		r = read_param(name, value, &d, ret, e);
		if (r < 0)
			return r;
	}
	if (r < 0)
		return err_set(e, -EINVAL, "a part's Content-Disposition is malformed");
	if (d.has_extended && !ret->has_filename) {
		if (!decode_extended(&d.extended))
			return err_set(e, -EINVAL, "a part's filename* is malformed");
		ret->filename = d.extended;
		ret->has_filename = true;
	}
	return 0;
}

static bool is_identity_encoding(struct view value)
{
	return view_iis(value, "binary") || view_iis(value, "8bit") || view_iis(value, "7bit");
}

static int read_line(struct view line, bool *seen, struct multipart_part *ret, struct err *e)
{
	size_t colon = view_find(line, ':');
	struct view name = view_first(line, colon), value = view_trim(view_skip(line, colon + 1));
	int r;

	if (colon == line.len || !http1_is_token(name) || !http_char_all(value, HTTP_FIELD))
		return err_set(e, -EINVAL, "a part's header line is malformed");
	if (view_iis(name, "content-transfer-encoding") && !is_identity_encoding(value))
		return err_set(e, -EINVAL, "a part's Content-Transfer-Encoding is not supported");
	if (!view_iis(name, "content-disposition"))
		return 0;
	r = once(seen, "Content-Disposition", e);
	return r < 0 ? r : read_disposition((char *)value.p, value.len, ret, e);
}

int multipart_header_parse(char *text, size_t len, struct multipart_part *ret, struct err *e)
{
	struct view rest = view_mem(text, len);
	struct multipart_part part = {0};
	bool seen = false;

	for (;;) {
		size_t lf = view_find(rest, '\n');
		struct view line = view_first(rest, lf > 0 ? lf - 1 : 0);
		int r;

		if (line.len == 0)
			break;
		r = read_line(line, &seen, &part, e);
		if (r < 0)
			return r;
		rest = view_skip(rest, lf + 1);
	}
	*ret = part;
	return 0;
}

/*
 * A parameter's raw value: quoted, or everything up to ';'.  Many clients forget the quotes that
 * a boundary with ':' or '=' would need.
 */
static bool take_raw_value(struct view *rest, struct view *ret)
{
	size_t n;

	if (rest->len > 0 && rest->p[0] == '"') {
		*rest = view_skip(*rest, 1);
		n = view_find(*rest, '"');
		*ret = view_first(*rest, n);
		if (n == rest->len || view_has(*ret, '\\'))
			return false;
		*rest = view_trim(view_skip(*rest, n + 1));
		if (rest->len > 0 && rest->p[0] != ';')
			return false;
		*rest = view_skip(*rest, 1);
		return true;
	}
	n = view_find(*rest, ';');
	*ret = view_trim(view_first(*rest, n));
	*rest = view_skip(*rest, n + 1);
	return ret->len > 0;
}

bool multipart_boundary(struct view content_type, struct view *ret)
{
	struct view rest = content_type, type, boundary = VIEW_NONE;

	if (!view_split(&rest, ';', &type) || !view_iis(view_trim(type), "multipart/form-data"))
		return false;
	for (rest = view_trim(rest); rest.len > 0; rest = view_trim(rest)) {
		struct view name = view_first(rest, view_find(rest, '=')), value;

		rest = view_skip(rest, name.len + 1);
		if (!http1_is_token(name) || !take_raw_value(&rest, &value))
			return false;
		if (!view_iis(name, "boundary"))
			continue;
		if (boundary.len > 0)
			return false;
		boundary = value;
		if (boundary.len == 0)
			return false;
	}
	if (boundary.len == 0 || boundary.len > MULTIPART_BOUNDARY_MAX ||
	    !http_char_all(boundary, HTTP_BOUNDARY) || boundary.p[boundary.len - 1] == ' ')
		return false;
	*ret = boundary;
	return true;
}
