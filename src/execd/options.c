/*
 * execd/options.c - the command line as a table.
 */
#include "execd/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/view.h"
#include "execd/code_pool.h"

#define DEFAULT_PORT	  44772
#define DEFAULT_GRACE_MS  200
#define MAX_GRACE_MS	  (24ULL * 3600 * 1000)
#define DEFAULT_LOG_BYTES (16 * 1024 * 1024)
#define MIN_LOG_BYTES	  65536

const char options_help[] =
	"usage: execd [options] [-- program [argument...]]\n"
	"\n"
	"Runs commands, edits files and opens terminals for whoever asks over HTTP.\n"
	"With a program behind \"--\", starts it, forwards signals to it, and exits as it does.\n"
	"\n"
	"  --listen ADDRESS      unix:PATH, tcp:IP:PORT or fd:N; may be repeated\n"
	"  --port N              without --listen: tcp:0.0.0.0:N (44772)\n"
	"  --access-token TOKEN  demanded in X-EXECD-ACCESS-TOKEN (EXECD_ACCESS_TOKEN)\n"
	"  --log-level LEVEL     error, warn, info, debug, or 0..7 (info)\n"
	"  --graceful-shutdown-timeout TIME\n"
	"                        for running requests at the end, like 200ms or 3s\n"
	"                        (EXECD_API_GRACE_SHUTDOWN; 200ms)\n"
	"  --state-dir DIR       logs of background commands ($TMPDIR or /tmp)\n"
	"  --status-file FILE    gets the program's exit status as JSON\n"
	"  --isolation-config FILE\n"
	"                        TOML settings of isolated sessions (EXECD_ISOLATION_CONFIG)\n"
	"  --isolation-upper-root DIR\n"
	"                        changes of overlay sessions (/var/lib/execd/isolation)\n"
	"  --isolation-allowed-writable DIR\n"
	"                        where sessions may write besides their workspace; may be\n"
	"                        repeated (/workspace, /mnt, /media, /data)\n"
	"  --code-pool LIST      interpreters started ahead, like python:2,bash:1\n"
	"  --start-fd N          wait on this socket for the start file\n"
	"  --status-fd N         file that gets the program's exit status as JSON\n"
	"  --log-fd N            file that gets the program's output, line by line\n"
	"  --log-max BYTES       its largest size (16777216)\n"
	"  --harden              programs may neither gain privileges nor make namespaces\n"
	"  --init                reap orphans even when not process 1\n"
	"  --help, --version\n"
	"\n"
	"EXECD_ENVS names a file of NAME=value lines for commands, EXECD_LOG_FILE the log.\n";

struct option {
	const char *name;
	const char *variable; /* in the environment, or NULL */
	bool is_flag;
	int (*set)(struct options *o, const char *value, struct err *e);
};

static int set_listen(struct options *o, const char *value, struct err *e)
{
	if (strncmp(value, "unix:", 5) != 0 && strncmp(value, "tcp:", 4) != 0 &&
	    strncmp(value, "fd:", 3) != 0)
		return err_set(e, -EINVAL, "'%s' is not unix:PATH, tcp:IP:PORT or fd:N", value);
	strv_add(&o->listen, value);
	return 0;
}

static int set_port(struct options *o, const char *value, struct err *e)
{
	uint32_t port;

	if (!num_parse_u32(view_of(value), &port) || port > UINT16_MAX)
		return err_set(e, -EINVAL, "'%s' is not a port", value);
	o->port = (uint16_t)port;
	return 0;
}

static int set_token(struct options *o, const char *value, struct err *e)
{
	o->access_token = *value ? value : NULL;
	return 0;
}

static int set_log_level(struct options *o, const char *value, struct err *e)
{
	static const struct {
		const char *name;
		enum log_level level;
	} levels[] = {
		{"error", LOG_ERROR}, {"warn", LOG_WARN}, {"warning", LOG_WARN}, {"info", LOG_INFO},
		{"debug", LOG_DEBUG}, {"0", LOG_ERROR},	  {"1", LOG_ERROR},	 {"2", LOG_ERROR},
		{"3", LOG_ERROR},     {"4", LOG_WARN},	  {"5", LOG_INFO},	 {"6", LOG_INFO},
		{"7", LOG_DEBUG},
	};

	for (size_t i = 0; i < ARRAY_LEN(levels); i++)
		if (strcmp(value, levels[i].name) == 0) {
			o->log_level = levels[i].level;
			return 0;
		}
	return err_set(e, -EINVAL, "'%s' is not a log level", value);
}

static int set_grace(struct options *o, const char *value, struct err *e)
{
	static const struct {
		const char *name;
		uint64_t ms;
	} units[] = {{"ms", 1}, {"s", 1000}, {"m", 60 * 1000}, {"h", 3600 * 1000}, {"", 0}};
	size_t digits = strspn(value, "0123456789");
	uint64_t n;

	if (!num_parse_u64(view_mem(value, digits), &n))
		return err_set(e, -EINVAL, "'%s' is not a time like 200ms or 3s", value);
	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		if (strcmp(value + digits, units[i].name) != 0 || (units[i].ms == 0 && n > 0))
			continue;
		if (n > 0 && n > MAX_GRACE_MS / units[i].ms)
			return err_set(e, -EINVAL, "'%s' is more than a day", value);
		o->grace_ms = n * units[i].ms;
		return 0;
	}
	return err_set(e, -EINVAL, "'%s' is not a time like 200ms or 3s", value);
}

static int set_envs_file(struct options *o, const char *value, struct err *e)
{
	o->envs_file = *value ? value : NULL;
	return 0;
}

static int set_log_file(struct options *o, const char *value, struct err *e)
{
	o->log_file = *value ? value : NULL;
	return 0;
}

static int set_state_dir(struct options *o, const char *value, struct err *e)
{
	o->state_dir = *value ? value : NULL;
	return 0;
}

static int set_status_file(struct options *o, const char *value, struct err *e)
{
	o->status_file = *value ? value : NULL;
	return 0;
}

static int set_isolation_config(struct options *o, const char *value, struct err *e)
{
	o->isolation_config = *value ? value : NULL;
	return 0;
}

static int set_isolation_upper_root(struct options *o, const char *value, struct err *e)
{
	if (*value != '/')
		return err_set(e, -EINVAL, "'%s' is not an absolute path", value);
	o->isolation_upper_root = value;
	return 0;
}

static int set_isolation_allowed(struct options *o, const char *value, struct err *e)
{
	if (*value != '/')
		return err_set(e, -EINVAL, "'%s' is not an absolute path", value);
	strv_add(&o->isolation_allowed, value);
	return 0;
}

static int parse_fd(const char *value, int *ret, struct err *e)
{
	uint32_t fd;

	if (!num_parse_u32(view_of(value), &fd) || fd < 3 || fd > INT32_MAX)
		return err_set(e, -EINVAL, "'%s' is not a descriptor from 3 on", value);
	*ret = (int)fd;
	return 0;
}

static int set_start_fd(struct options *o, const char *value, struct err *e)
{
	return parse_fd(value, &o->start_fd, e);
}

static int set_status_fd(struct options *o, const char *value, struct err *e)
{
	return parse_fd(value, &o->status_fd, e);
}

static int set_log_fd(struct options *o, const char *value, struct err *e)
{
	return parse_fd(value, &o->log_fd, e);
}

static int set_log_max(struct options *o, const char *value, struct err *e)
{
	if (!num_parse_u64(view_of(value), &o->log_max) || o->log_max < MIN_LOG_BYTES)
		return err_set(e, -EINVAL, "'%s' is not a number from %d on", value, MIN_LOG_BYTES);
	return 0;
}

static int set_code_pool(struct options *o, const char *value, struct err *e)
{
	o->code_pool = value;
	return code_pool_check(view_of(value), e);
}

static int set_harden(struct options *o, const char *value, struct err *e)
{
	o->harden = true;
	return 0;
}

static int set_init(struct options *o, const char *value, struct err *e)
{
	o->init = true;
	return 0;
}

static int set_help(struct options *o, const char *value, struct err *e)
{
	o->help = true;
	return 0;
}

static int set_version(struct options *o, const char *value, struct err *e)
{
	o->version = true;
	return 0;
}

/* A row without a name is settable by its variable alone. */
static const struct option table[] = {
	{"listen", NULL, false, set_listen},
	{"port", NULL, false, set_port},
	{"access-token", "EXECD_ACCESS_TOKEN", false, set_token},
	{"log-level", NULL, false, set_log_level},
	{"graceful-shutdown-timeout", "EXECD_API_GRACE_SHUTDOWN", false, set_grace},
	{"state-dir", NULL, false, set_state_dir},
	{"status-file", NULL, false, set_status_file},
	{"isolation-config", "EXECD_ISOLATION_CONFIG", false, set_isolation_config},
	{"isolation-upper-root", NULL, false, set_isolation_upper_root},
	{"isolation-allowed-writable", NULL, false, set_isolation_allowed},
	{"start-fd", NULL, false, set_start_fd},
	{"status-fd", NULL, false, set_status_fd},
	{"log-fd", NULL, false, set_log_fd},
	{"log-max", NULL, false, set_log_max},
	{"code-pool", NULL, false, set_code_pool},
	{"harden", NULL, true, set_harden},
	{"init", NULL, true, set_init},
	{"help", NULL, true, set_help},
	{"version", NULL, true, set_version},
	{NULL, "EXECD_ENVS", false, set_envs_file},
	{NULL, "EXECD_LOG_FILE", false, set_log_file},
};

static int parse_environment(struct options *o, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		const char *value = table[i].variable ? getenv(table[i].variable) : NULL;

		if (value && *value && table[i].set(o, value, e) < 0)
			return err_ctx(e, "%s", table[i].variable);
	}
	return 0;
}

static const struct option *find(struct view name)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].name && view_is(name, table[i].name))
			return &table[i];
	return NULL;
}

/* One option at argv[*i]; steps over a value that is an argument of its own. */
static int parse_option(struct options *o, int argc, char *const *argv, int *i, struct err *e)
{
	struct view text = view_of(argv[*i]);
	const struct option *option;
	struct view name;
	const char *value = NULL;

	text = view_skip(text, view_starts(text, VIEW("--")) ? 2 : 1);
	name = view_first(text, view_find(text, '='));
	option = find(name);
	if (!option)
		return err_set(e, -EINVAL, "unknown option '%s'; try --help", argv[*i]);
	if (name.len < text.len)
		value = name.p + name.len + 1;
	if (option->is_flag) {
		if (value)
			return err_set(e, -EINVAL, "--%s takes no value", option->name);
	} else if (!value) {
		if (*i + 1 >= argc)
			return err_set(e, -EINVAL, "--%s needs a value", option->name);
		value = argv[++*i];
	}
	if (option->set(o, value, e) < 0)
		return err_ctx(e, "--%s", option->name);
	return 0;
}

int options_parse(struct options *o, int argc, char *const *argv, struct err *e)
{
	*o = (struct options){
		.port = DEFAULT_PORT,
		.log_level = LOG_INFO,
		.grace_ms = DEFAULT_GRACE_MS,
		.start_fd = -1,
		.status_fd = -1,
		.log_fd = -1,
		.log_max = DEFAULT_LOG_BYTES,
	};
	if (parse_environment(o, e) < 0)
		return e->code;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0) {
			o->entrypoint = argv[i + 1] ? argv + i + 1 : NULL;
			break;
		}
		if (argv[i][0] != '-' || argv[i][1] == '\0')
			return err_set(e, -EINVAL,
				       "'%s' is no option; a program comes after \"--\"", argv[i]);
		if (parse_option(o, argc, argv, &i, e) < 0)
			return e->code;
	}
	return 0;
}

static void blot_out(char *text)
{
	if (text)
		memset(text, '*', strlen(text));
}

void options_hide_token(struct options *o)
{
	if (o->access_token) {
		o->own_token = mem_strdup(o->access_token);
		/* It points into argv or the environment, which are ours to write to. */
		blot_out((char *)o->access_token);
		o->access_token = o->own_token;
	}
	blot_out(getenv("EXECD_ACCESS_TOKEN"));
}

void options_take_env(struct options *o, struct strv *env)
{
	const char *file = strv_env_get(env, VIEW("EXECD_ENVS"));
	const char *grace = strv_env_get(env, VIEW("EXECD_API_GRACE_SHUTDOWN"));
	struct err ignored = ERR_NONE;

	if (file && *file) {
		free(o->own_envs_file);
		o->envs_file = o->own_envs_file = mem_strdup(file);
	}
	if (grace)
		(void)!set_grace(o, grace, &ignored);
	strv_env_unset(env, VIEW("EXECD_ACCESS_TOKEN"));
}

void options_done(struct options *o)
{
	free(o->own_envs_file);
	free(o->own_token);
	free(o->own_code_pool);
	strv_done(&o->listen);
	strv_done(&o->isolation_allowed);
}
