/*
 * execd/isolated_config.c - defaults, a TOML file, and options over both.
 *
 * The file's keys stand at its top or in a table [isolation].
 */
#include "execd/isolated_config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "codec/toml.h"
#include "execd/options.h"

#define UPPER_ROOT "/var/lib/execd/isolation"
#define UPPER_MAX  ((uint64_t)8 << 30)

static int read_file(const char *path, struct buf *out, struct err *e)
{
	osb_cleanup(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = 1;

	while (fd >= 0 && n > 0) {
		char *p = buf_reserve(out, 4096);

		if (!p)
			return err_set(e, -E2BIG, "'%s' is too large", path);
		n = read(fd, p, 4096);
		if (n > 0)
			buf_commit(out, (size_t)n);
	}
	return fd < 0 || n < 0 ? err_set(e, -errno, "read '%s': %m", path) : 0;
}

static int take_allowed(struct isolated_config *c, const struct toml *t, struct err *e)
{
	const struct toml *list = NULL;
	int r = toml_field_array(t, "allowed_writable", &list, e);

	if (r <= 0)
		return r;
	strv_done(&c->allowed_writable);
	c->allowed_writable = STRV_INIT;
	for (const struct toml *v = list->first; v; v = v->next) {
		if (v->kind != TOML_STRING || !view_starts(v->text, VIEW("/")))
			return err_set(
				e, -EINVAL,
				"line %u: 'allowed_writable' must be a list of absolute paths",
				v->line);
		strv_add_view(&c->allowed_writable, v->text);
	}
	return 0;
}

static int take_file(struct isolated_config *c, const char *path, struct err *e)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(TOML_MAX_BYTES);
	osb_cleanup(arena_done) struct arena a;
	const struct toml *t;
	struct toml *root;
	struct view upper = VIEW_NONE;
	int64_t max = (int64_t)c->upper_max;
	int r;

	arena_init(&a, 8 * (size_t)TOML_MAX_BYTES);
	r = read_file(path, &text, e);
	if (r == 0)
		r = toml_parse(buf_view(&text), &a, &root, e);
	if (r < 0)
		return r;
	t = toml_get(root, "isolation") ? toml_get(root, "isolation") : root;
	if (toml_field_string(t, "upper_root", &upper, e) < 0 ||
	    toml_field_int(t, "upper_max_bytes", 0, INT64_MAX, &max, e) < 0 ||
	    take_allowed(c, t, e) < 0)
		return e->code;
	c->upper_max = (uint64_t)max;
	if (upper.len == 0)
		return 0;
	if (upper.p[0] != '/')
		return err_set(e, -EINVAL, "'upper_root' must be an absolute path");
	free(c->upper_root);
	c->upper_root = mem_strndup(upper.p, upper.len);
	return 0;
}

int isolated_config_load(struct isolated_config *c, const struct options *o, struct err *e)
{
	static char *const allowed[] = {(char *)"/workspace", (char *)"/mnt", (char *)"/media",
					(char *)"/data", NULL};

	*c = (struct isolated_config){.upper_root = mem_strdup(UPPER_ROOT), .upper_max = UPPER_MAX};
	strv_copy(&c->allowed_writable, allowed);
	if (o->isolation_config && take_file(c, o->isolation_config, e) < 0)
		return err_ctx(e, "isolation settings '%s'", o->isolation_config);
	if (o->isolation_upper_root) {
		free(c->upper_root);
		c->upper_root = mem_strdup(o->isolation_upper_root);
	}
	if (o->isolation_allowed.len > 0) {
		strv_done(&c->allowed_writable);
		c->allowed_writable = STRV_INIT;
		strv_copy(&c->allowed_writable, o->isolation_allowed.v);
	}
	return 0;
}

void isolated_config_done(struct isolated_config *c)
{
	free(c->upper_root);
	c->upper_root = NULL;
	strv_done(&c->allowed_writable);
}
