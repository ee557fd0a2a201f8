/*
 * execd/env.c - environments, put together.
 */
#include "execd/env.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/strv.h"
#include "codec/dotenv.h"
#include "codec/expand.h"
#include "codec/json.h"
#include "execd/app.h"
#include "execd/options.h"
#include "execd/users.h"

#define FILE_MAX  (1024 * 1024)
#define ARENA_MAX (4 * 1024 * 1024)
#define READ_SIZE 4096
#define ENVS_MAX  4096 /* members of a request's envs */

void env_inherit(struct strv *ret, char *const *environment)
{
	for (size_t i = 0; environment && environment[i]; i++)
		if (!view_starts(view_of(environment[i]), VIEW("EXECD_")))
			strv_add(ret, environment[i]);
}

char *env_home(const struct strv *env)
{
	const char *home = strv_env_get(env, VIEW("HOME"));
	struct users *users;
	struct view known;
	char *ret;

	if (home && *home == '/')
		return mem_strdup(home);
	users = users_load();
	known = users_home(users, geteuid());
	ret = known.len > 0 ? mem_strndup(known.p, known.len) : mem_strdup("/");
	users_free(users);
	return ret;
}

/* The superuser has one name everywhere: no file needs to be read for it. */
static char *user_name(void)
{
	struct users *users;
	struct view known;
	char *ret;

	if (geteuid() == 0)
		return mem_strdup("root");
	users = users_load();
	known = users_name(users, geteuid());
	ret = known.len > 0 ? mem_strndup(known.p, known.len)
			    : mem_printf("%u", (unsigned)geteuid());
	users_free(users);
	return ret;
}

static const char *lookup(void *arg, struct view name)
{
	return strv_env_get(arg, name);
}

static int read_file(const char *path, struct buf *ret)
{
	osb_cleanup(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	for (;;) {
		char *room = buf_reserve(ret, READ_SIZE);
		ssize_t n;

		if (!room)
			return -E2BIG;
		n = read(fd, room, READ_SIZE);
		if (n <= 0)
			return n < 0 ? -errno : 0;
		buf_commit(ret, (size_t)n);
	}
}

/* A file that is missing or unreadable adds nothing: it may not have been written yet. */
static void add_file(const char *path, struct strv *env)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(FILE_MAX);
	struct view rest, name, value;
	struct arena arena;
	int literal;

	if (read_file(path, &text) < 0)
		return;
	arena_init(&arena, ARENA_MAX);
	rest = buf_view(&text);
	while (dotenv_next(&rest, &name, &value, &literal) > 0) {
		if (memchr(value.p, '\0', value.len))
			continue;
		if (!literal && expand_vars(&arena, value, lookup, env, &value) < 0)
			break;
		strv_env_set(env, name, value);
	}
	arena_done(&arena);
}

int env_add_object(const struct json *envs, struct strv *env, struct err *e)
{
	const struct json *member;
	struct view name, value;
	void *it = NULL;

	if (json_len(envs) > ENVS_MAX)
		return err_set(e, -E2BIG, "envs has more than %d variables", ENVS_MAX);
	while (json_next(envs, &it, &name, &member)) {
		if (name.len == 0 || view_has(name, '=') || view_has(name, '\0'))
			return err_set(e, -EINVAL,
				       "envs has the name '" VIEW_FMT
				       "', which is not a variable name",
				       VIEW_ARG(view_first(name, 64)));
		if (!json_str(member, &value))
			return err_set(e, -EINVAL, "envs." VIEW_FMT " must be a string, not %s",
				       VIEW_ARG(view_first(name, 64)),
				       json_kind_name(json_kind(member)));
		if (view_has(value, '\0'))
			return err_set(e, -EINVAL, "envs." VIEW_FMT " has a NUL byte",
				       VIEW_ARG(view_first(name, 64)));
		strv_env_set(env, name, value);
	}
	return 0;
}

int env_for_command(struct app *app, const struct json *envs, struct strv *ret, struct err *e)
{
	strv_copy(ret, strv_args(&app->env));
	if (app->options->envs_file)
		add_file(app->options->envs_file, ret);
	return envs ? env_add_object(envs, ret, e) : 0;
}

void env_add_defaults(struct strv *env)
{
	static const struct {
		struct view name;
		const char *value; /* NULL: by the user */
	} defaults[] = {
		{VIEW("PATH"), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		{VIEW("LANG"), "C.UTF-8"},
		{VIEW("EXECD_ENVS"), "/opt/opensandbox/.env"},
		{VIEW("HOME"), NULL},
		{VIEW("USER"), NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(defaults); i++) {
		osb_cleanup(mem_freep) char *own = NULL;

		if (strv_env_get(env, defaults[i].name))
			continue;
		if (!defaults[i].value)
			own = view_is(defaults[i].name, "HOME") ? env_home(env) : user_name();
		strv_env_set(env, defaults[i].name,
			     view_of(defaults[i].value ? defaults[i].value : own));
	}
}

bool env_is_plain(const struct app *app)
{
	return !app->options->envs_file;
}
