/*
 * codec/tar_pax.c - "LENGTH KEY=VALUE\n", again and again.
 */
#include "codec/tar_pax.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "codec/tar_map.h"

#define XATTR_KEY "SCHILY.xattr."

static int bad(struct err *e, struct view key)
{
	struct view shown = view_first(key, 64);

	return err_set(e, -EBADMSG, "a pax record of the tar archive is bad: '" VIEW_FMT "'",
		       VIEW_ARG(shown));
}

/* Cuts one record off the front. */
static int next_record(struct view *rest, struct view *ret_key, struct view *ret_value)
{
	size_t digits = view_find(view_first(*rest, 20), ' ');
	struct view record;
	uint64_t len;
	size_t eq;

	if (!num_parse_u64(view_first(*rest, digits), &len) || len > rest->len || len < digits + 4)
		return -EBADMSG;
	record = view_skip(view_first(*rest, (size_t)len), digits + 1);
	if (record.p[record.len - 1] != '\n')
		return -EBADMSG;
	record = view_first(record, record.len - 1);
	eq = view_find(record, '=');
	if (eq == 0 || eq == record.len)
		return -EBADMSG;
	*ret_key = view_first(record, eq);
	*ret_value = view_skip(record, eq + 1);
	*rest = view_skip(*rest, (size_t)len);
	return 0;
}

/* "-12.5" is half a second before -12 s. */
static bool parse_time(struct view text, int64_t *ret_s, uint32_t *ret_ns)
{
	size_t dot = view_find(text, '.');
	struct view fraction = view_skip(text, dot + 1);
	uint32_t ns = 0, unit = 100000000;
	int64_t s;

	if (!num_parse_i64(view_first(text, dot), &s) || s == INT64_MIN)
		return false;
	for (size_t i = 0; i < fraction.len; i++, unit /= 10) {
		if (fraction.p[i] < '0' || fraction.p[i] > '9')
			return false;
		ns += (uint32_t)(fraction.p[i] - '0') * unit;
	}
	if (text.len > 0 && text.p[0] == '-' && ns > 0) {
		s--;
		ns = 1000000000 - ns;
	}
	*ret_s = s;
	*ret_ns = ns;
	return true;
}

static int add_xattr(struct tar_pax *p, struct view name, struct view value, struct err *e)
{
	size_t bytes = name.len + value.len;

	for (size_t i = 0; i < p->xattrs_n; i++)
		bytes += p->xattrs[i].name.len + p->xattrs[i].value.len;
	if (name.len == 0 || name.len > 255 || view_has(name, '\0'))
		return err_set(e, -EBADMSG, "an extended attribute has a bad name");
	if (p->xattrs_n == TAR_XATTRS_MAX || bytes > TAR_XATTRS_MAX_BYTES)
		return err_set(e, -EBADMSG, "a file has too many or too large extended attributes");
	p->xattrs[p->xattrs_n++] = (struct tar_xattr){name, value};
	return 0;
}

/* All versions: pieces as records, as one record, or in front of the content. */
static int parse_sparse(struct tar_pax *p, struct view key, struct view value, struct tar_map *map)
{
	uint64_t n;

	p->is_sparse = true;
	if (view_is(key, "map"))
		return tar_map_add_text(map, value, ',');
	if (view_is(key, "name")) {
		p->sparse_path = value;
		return 0;
	}
	if (!num_parse_u64(value, &n))
		return -EBADMSG;
	if (view_is(key, "major"))
		p->map_in_content = n == 1;
	else if (view_is(key, "size") || view_is(key, "realsize"))
		p->real_size = n;
	else if (view_is(key, "offset"))
		return tar_map_add_number(map, n, /* is_len= */ false);
	else if (view_is(key, "numbytes"))
		return tar_map_add_number(map, n, /* is_len= */ true);
	else if (!view_is(key, "minor") && !view_is(key, "numblocks"))
		return -EBADMSG;
	return 0;
}

static int take_record(struct tar_pax *p, struct view key, struct view value, struct tar_map *map,
		       struct err *e)
{
	bool ok = true;

	/* An empty value takes back what a global header said; we listen to none. */
	if (value.len == 0)
		return 0;
	if (view_is(key, "path"))
		p->path = value;
	else if (view_is(key, "linkpath"))
		p->target = value;
	else if (view_is(key, "size"))
		ok = p->has_size = num_parse_u64(value, &p->size);
	else if (view_is(key, "uid"))
		ok = p->has_uid = num_parse_u64(value, &p->uid);
	else if (view_is(key, "gid"))
		ok = p->has_gid = num_parse_u64(value, &p->gid);
	else if (view_is(key, "mtime"))
		ok = p->has_mtime = parse_time(value, &p->mtime_s, &p->mtime_ns);
	else if (view_starts(key, VIEW("GNU.sparse.")))
		ok = parse_sparse(p, view_skip(key, sizeof("GNU.sparse.") - 1), value, map) == 0;
	return ok ? 0 : bad(e, key);
}

int tar_pax_parse(struct view text, struct tar_pax *ret, struct tar_map *map, struct err *e)
{
	int r = 0;

	memset(ret, 0, sizeof(*ret));
	while (r == 0 && text.len > 0) {
		struct view key, value;

		if (next_record(&text, &key, &value) < 0)
			return bad(e, view_first(text, view_find(text, '=')));
		/* An empty attribute is one, too. */
		if (view_starts(key, VIEW(XATTR_KEY)))
			r = add_xattr(ret, view_skip(key, sizeof(XATTR_KEY) - 1), value, e);
		else
			r = take_record(ret, key, value, map, e);
	}
	if (r == 0 && (view_has(ret->path, '\0') || view_has(ret->target, '\0') ||
		       view_has(ret->sparse_path, '\0')))
		r = err_set(e, -EBADMSG, "a path of the tar archive holds a NUL");
	return r;
}
