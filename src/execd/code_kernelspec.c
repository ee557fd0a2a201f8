/*
 * execd/code_kernelspec.c - see code_kernelspec.h.
 */
#include "execd/code_kernelspec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "codec/json.h"

#define SPEC_MAX_BYTES (64 * 1024)
#define ARGS_MAX       256

static const char *const system_dirs[] = {
	"/usr/local/share/jupyter", "/usr/share/jupyter",	  "/opt/conda/share/jupyter",
	"/opt/venv/share/jupyter",  "/opt/jupyter/share/jupyter",
};

static int read_json(const char *dir, struct json **ret, struct err *e)
{
	osb_cleanup(mem_freep) char *path = mem_printf("%s/kernel.json", dir);
	osb_cleanup(mem_freep) char *text = mem_alloc(SPEC_MAX_BYTES);
	osb_cleanup(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, text, SPEC_MAX_BYTES);

	if (n < 0)
		return err_set(e, -errno, "read %s: %m", path);
	if (json_parse(view_mem(text, (size_t)n), 0, ret, e) < 0)
		return err_ctx(e, "%s", path);
	return 0;
}

/* The name of the directory, or the language in its kernel.json. */
static bool serves(const char *dir, const char *name, struct view language)
{
	osb_cleanup(json_freep) struct json *spec = NULL;
	struct err ignored = ERR_NONE; /* a broken one serves nothing */
	struct view own;

	if (read_json(dir, &spec, &ignored) < 0)
		return false;
	return view_ieq(view_of(name), language) ||
	       (json_str(json_get(spec, "language"), &own) && view_ieq(own, language));
}

/* In the order of their names, so that the answer is always the same. */
static char *find_below(const char *kernels, struct view language)
{
	struct dirent **entries;
	char *found = NULL;
	int n = scandir(kernels, &entries, NULL, alphasort);

	for (int i = 0; i < n; i++) {
		if (!found && entries[i]->d_name[0] != '.') {
			char *dir = mem_printf("%s/%s", kernels, entries[i]->d_name);

			if (serves(dir, entries[i]->d_name, language))
				found = dir;
			else
				free(dir);
		}
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	return found;
}

static void add_dir(struct strv *dirs, struct view base, const char *below)
{
	if (base.len > 0 && base.p[0] == '/')
		strv_take(dirs, mem_printf(VIEW_FMT "%s/kernels", VIEW_ARG(base), below));
}

/* As jupyter_core looks for data: what the environment names, the user's, the system's. */
static void places(const struct strv *env, struct strv *ret)
{
	struct view path = view_of(strv_env_get(env, VIEW("JUPYTER_PATH"))), one;
	const char *home = strv_env_get(env, VIEW("HOME"));

	while (view_split(&path, ':', &one))
		add_dir(ret, one, "");
	add_dir(ret, view_of(strv_env_get(env, VIEW("JUPYTER_DATA_DIR"))), "");
	add_dir(ret, view_of(strv_env_get(env, VIEW("XDG_DATA_HOME"))), "/jupyter");
	add_dir(ret, view_of(home), "/.local/share/jupyter");
	add_dir(ret, view_of(strv_env_get(env, VIEW("VIRTUAL_ENV"))), "/share/jupyter");
	add_dir(ret, view_of(strv_env_get(env, VIEW("CONDA_PREFIX"))), "/share/jupyter");
	for (size_t i = 0; i < ARRAY_LEN(system_dirs); i++)
		add_dir(ret, view_of(system_dirs[i]), "");
}

char *code_kernelspec_find(struct view language, const struct strv *env)
{
	struct strv dirs = STRV_INIT;
	char *found = NULL;

	places(env, &dirs);
	for (size_t i = 0; !found && i < dirs.len; i++)
		found = find_below(dirs.v[i], language);
	strv_done(&dirs);
	return found;
}

static int take_argv(const struct json *spec, struct strv *ret, struct err *e)
{
	const struct json *argv = json_get(spec, "argv");
	size_t n = json_len(argv);

	for (size_t i = 0; i < n && n <= ARGS_MAX; i++) {
		struct view arg;

		if (!json_str(json_at(argv, i), &arg) || view_has(arg, '\0'))
			return err_set(e, -EINVAL, "'argv' holds something else than strings");
		strv_add_view(ret, arg);
	}
	if (ret->len == 0)
		return err_set(e, -EINVAL, "'argv' is missing, empty or too long");
	return 0;
}

static void take_env(const struct json *spec, struct strv *ret)
{
	const struct json *env = json_get(spec, "env"), *value;
	struct view name, text;
	void *it = NULL;

	while (json_next(env, &it, &name, &value))
		if (json_str(value, &text) && !view_has(text, '\0') && name.len > 0 &&
		    !view_has(name, '=') && !view_has(name, '\0') && ret->len < ARGS_MAX)
			strv_env_set(ret, name, text);
}

static int take_spec(const struct json *spec, struct code_kernelspec *ret, struct err *e)
{
	struct code_kernelspec s = {0};
	struct view mode;
	int r = take_argv(spec, &s.argv, e);

	if (r < 0) {
		code_kernelspec_done(&s);
		return r;
	}
	take_env(spec, &s.env);
	s.interrupt_by_message =
		json_str(json_get(spec, "interrupt_mode"), &mode) && view_is(mode, "message");
	*ret = s;
	return 0;
}

int code_kernelspec_parse(struct view text, struct code_kernelspec *ret, struct err *e)
{
	osb_cleanup(json_freep) struct json *spec = NULL;

	if (json_parse(text, 0, &spec, e) < 0)
		return e->code;
	return take_spec(spec, ret, e);
}

int code_kernelspec_load(const char *dir, struct code_kernelspec *ret, struct err *e)
{
	osb_cleanup(json_freep) struct json *spec = NULL;
	int r = read_json(dir, &spec, e);

	if (r == 0)
		r = take_spec(spec, ret, e);
	return r < 0 ? err_ctx(e, "kernel in %s", dir) : 0;
}

void code_kernelspec_done(struct code_kernelspec *s)
{
	strv_done(&s->argv);
	strv_done(&s->env);
}
