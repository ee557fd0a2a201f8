/*
 * execd/paths.c - from what a client wrote to an absolute path.
 */
#include "execd/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/strv.h"
#include "codec/expand.h"
#include "execd/app.h"
#include "execd/file_names.h"

static const char *lookup_env(void *arg, struct view name)
{
	return strv_env_get(arg, name);
}

/* Appends the segments of `path` to `out`, one slash each, without "." and empty ones. */
static char *append_segments(char *out, struct view path)
{
	struct view segment;

	while (view_split(&path, '/', &segment)) {
		if (segment.len == 0 || view_is(segment, "."))
			continue;
		*out++ = '/';
		memcpy(out, segment.p, segment.len);
		out += segment.len;
	}
	return out;
}

/* Joins and cleans; both parts are shorter than PATH_MAX. */
static const char *join(struct arena *a, struct view base, struct view path)
{
	char *out = arena_alloc(a, base.len + path.len + 3);
	char *end = out;

	if (!out)
		return NULL;
	end = append_segments(end, base);
	end = append_segments(end, path);
	if (end == out)
		*end++ = '/';
	*end = '\0';
	return out;
}

int paths_resolve_at(struct app *app, struct arena *a, struct view text, const struct strv *env,
		     const char *base, const char **ret, struct err *e)
{
	char cwd[PATH_MAX] = "/";
	struct view path;
	int r;

	if (text.len == 0)
		return err_set(e, -EINVAL, "the path is empty");
	if (memchr(text.p, '\0', text.len))
		return err_set(e, -EINVAL, "the path contains a NUL byte");

	r = file_name_unescape(a, text, &path);
	if (r < 0)
		return err_set(e, r, "the path is too long");
	r = expand_path(a, path, app->home, lookup_env, (void *)(env ? env : &app->env), &path, e);
	if (r < 0)
		return r;
	if (path.len == 0)
		return err_set(e, -EINVAL, "the path is empty after expansion");
	if (memchr(path.p, '\0', path.len))
		return err_set(e, -EINVAL, "the path contains a NUL byte");
	if (path.len >= PATH_MAX)
		return err_set(e, -ENAMETOOLONG, "the path has %zu bytes; at most %d are possible",
			       path.len, PATH_MAX - 1);

	if (path.p[0] == '/')
		base = "/";
	else if (!base)
		base = getcwd(cwd, sizeof(cwd)) && cwd[0] == '/' ? cwd : "/";

	*ret = join(a, view_of(base), path);
	if (!*ret)
		return err_set(e, -E2BIG, "the request names too many or too long paths");
	if (strlen(*ret) >= PATH_MAX)
		return err_set(e, -ENAMETOOLONG, "the absolute path has over %d bytes",
			       PATH_MAX - 1);
	return 0;
}

int paths_resolve(struct app *app, struct arena *a, struct view text, const struct strv *env,
		  const char **ret, struct err *e)
{
	return paths_resolve_at(app, a, text, env, NULL, ret, e);
}

int paths_make_dirs(const char *path, struct err *e)
{
	osb_cleanup(mem_freep) char *copy = mem_strdup(path);
	char name[FILE_NAME_SHORT];
	char *at = copy;
	struct stat st;

	/* Most often everything is there already. */
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return 0;

	while (at) {
		while (*at == '/')
			at++;
		at = strchr(at, '/');
		if (at)
			*at = '\0';
		if (mkdir(copy, 0755) < 0 && errno != EEXIST && errno != EISDIR)
			if (stat(copy, &st) < 0 || !S_ISDIR(st.st_mode))
				return err_set(e, -errno, "create directory '%s': %m",
					       file_name_short(copy, name));
		if (at)
			*at++ = '/';
	}
	return paths_check_dir(path, e);
}

int paths_check_dir(const char *path, struct err *e)
{
	char name[FILE_NAME_SHORT];
	struct stat st;

	if (stat(path, &st) < 0)
		return err_set(e, -errno, "directory '%s': %m", file_name_short(path, name));
	if (!S_ISDIR(st.st_mode))
		return err_set(e, -ENOTDIR, "'%s' is not a directory", file_name_short(path, name));
	return 0;
}
