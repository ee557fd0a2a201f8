/*
 * cli/cmd_config.c - osb config ...: a file with a key in it, so nobody else may read it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/num.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/config_file.h"
#include "cli/show.h"
#include "codec/json_writer.h"
#include "codec/toml.h"

#define TEXT_MAX (1u << 20)

static const char template[] =
	"# What osb and the SDKs use where no option and no variable says more.\n"
	"\n[connection]\n"
	"# api_key = \"...\"\n# domain = \"localhost:8080\"\n"
	"# protocol = \"http\"\n# request_timeout = 30\n"
	"# use_server_proxy = false\n"
	"\n[output]\n# color = true\n"
	"\n[defaults]\n# image = \"python:3.12\"\n"
	"# timeout = \"10m\"  # or \"none\": it lives until it is killed\n";

/* What may be set, and what it is. */
static const struct {
	const char *section, *key;
	enum { A_STRING, A_NUMBER, A_BOOL } kind;
} settings[] = {
	{"connection", "api_key", A_STRING},
	{"connection", "domain", A_STRING},
	{"connection", "protocol", A_STRING},
	{"connection", "request_timeout", A_NUMBER},
	{"connection", "use_server_proxy", A_BOOL},
	{"output", "color", A_BOOL},
	{"defaults", "image", A_STRING},
	{"defaults", "timeout", A_STRING},
};

static char *path_of(struct cli *c)
{
	const char *given = cli_flag(c, "config"), *home = getenv("HOME");

	if (given)
		return mem_strdup(given);
	return mem_printf("%s/.opensandbox/config.toml", home ? home : "");
}

/* The whole file; NULL = there is none. */
static char *read_text(const char *path)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(TEXT_MAX);
	osb_cleanup(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = 1;

	while (fd >= 0 && n > 0) {
		char *room = buf_reserve(&text, 4096);

		n = room ? read(fd, room, 4096) : 0;
		buf_commit(&text, n > 0 ? (size_t)n : 0);
	}
	return fd < 0 ? NULL : buf_take_str(&text);
}

/* Replaced whole, and readable by its owner alone. */
static int write_text(struct cli *c, const char *path, struct view text)
{
	osb_cleanup(mem_freep) char *part = mem_printf("%s.new-%d", path, (int)getpid());
	osb_cleanup(mem_freep) char *directory = mem_strdup(path);
	osb_cleanup(fd_closep) int fd = -1;
	char *slash = strrchr(directory, '/');

	if (slash && slash != directory) {
		*slash = '\0';
		if (mkdir(directory, 0700) < 0 && errno != EEXIST)
			return cli_error(c, "%s: %s", directory, strerror(errno));
	}
	fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return cli_error(c, "%s: %s", part, strerror(errno));
	if (write(fd, text.p, text.len) != (ssize_t)text.len || fsync(fd) < 0 ||
	    rename(part, path) < 0) {
		int problem = errno;

		(void)unlink(part);
		return cli_error(c, "%s: %s", path, strerror(problem));
	}
	return 0;
}

char *config_file_get(struct cli *c, const char *section, const char *key)
{
	osb_cleanup(mem_freep) char *path = path_of(c), *text = read_text(path);
	struct err e = ERR_NONE;
	struct toml *root = NULL;
	const struct toml *v;
	struct arena mem;
	char *found = NULL;

	if (!text)
		return NULL;
	arena_init(&mem, 4 * TEXT_MAX);
	if (toml_parse(view_of(text), &mem, &root, &e) == 0) {
		v = toml_get(toml_get(root, section), key);
		if (v && v->kind == TOML_STRING)
			found = mem_strndup(v->text.p, v->text.len);
		else if (v && v->kind == TOML_INT)
			found = mem_printf("%lld", (long long)v->integer);
		else if (v && v->kind == TOML_BOOL)
			found = mem_strdup(v->boolean ? "true" : "false");
	}
	arena_done(&mem);
	return found;
}

int config_init(struct cli *c)
{
	osb_cleanup(mem_freep) char *path = path_of(c);
	int code;

	if (access(path, F_OK) == 0 && !cli_has(c, "force"))
		return cli_error(c, "%s exists; --force writes it anew", path);
	code = write_text(c, path, view_mem(template, sizeof(template) - 1));
	return code ? code : show_done(c, "Config file created: %s", path);
}

/* ---- show ---- */

static char *masked(const char *key)
{
	size_t n = strlen(key);
	char *text = mem_strdup(key);

	for (size_t i = n > 8 ? 2 : 0; i < n - (n > 8 ? 2 : 0); i++)
		text[i] = '*';
	return text;
}

/* An option, its variable, the file, the default: whichever is there first. */
static char *resolve(struct cli *c, const char *flag, const char *variable, const char *section,
		     const char *key, const char *otherwise)
{
	const char *given = flag ? cli_flag(c, flag) : NULL;
	const char *said = variable ? getenv(variable) : NULL;
	char *text;

	if (!given && said && said[0])
		given = said;
	if (given)
		return mem_strdup(given);
	text = config_file_get(c, section, key);
	return text || !otherwise ? text : mem_strdup(otherwise);
}

static void put_setting(struct json_writer *w, const char *name, char *text, bool bare)
{
	json_write_key(w, name);
	if (!text)
		json_write_null(w);
	else if (bare)
		json_write_text(w, view_of(text));
	else
		json_write_cstr(w, text);
	free(text);
}

static bool is_true(const char *text)
{
	return text && (strcmp(text, "true") == 0 || strcmp(text, "1") == 0);
}

static void put_bool(struct json_writer *w, const char *name, char *text)
{
	json_put_bool(w, name, is_true(text));
	free(text);
}

int config_show(struct cli *c)
{
	osb_cleanup(buf_done) struct buf json = BUF_INIT(CLI_JSON_MAX);
	osb_cleanup(mem_freep) char *path = path_of(c);
	osb_cleanup(mem_freep) char *key =
		resolve(c, "api-key", "OPEN_SANDBOX_API_KEY", "connection", "api_key", NULL);
	char *seconds = resolve(c, "request-timeout", "OPEN_SANDBOX_REQUEST_TIMEOUT", "connection",
				"request_timeout", "30");
	struct json_writer w;
	uint32_t n;

	if (!num_parse_u32(view_of(seconds), &n)) {
		free(seconds);
		return cli_error(c, "request_timeout is no number of seconds");
	}
	json_writer_init(&w, &json);
	json_write_object(&w);
	put_setting(&w, "api_key", key ? masked(key) : NULL, false);
	put_setting(&w, "domain",
		    resolve(c, "domain", "OPEN_SANDBOX_DOMAIN", "connection", "domain", NULL),
		    false);
	put_setting(
		&w, "protocol",
		resolve(c, "protocol", "OPEN_SANDBOX_PROTOCOL", "connection", "protocol", "http"),
		false);
	put_setting(&w, "request_timeout", seconds, true);
	put_bool(&w, "use_server_proxy",
		 cli_has(c, "use-server-proxy")
			 ? mem_strdup("true")
			 : resolve(c, NULL, "OPEN_SANDBOX_USE_SERVER_PROXY", "connection",
				   "use_server_proxy", "false"));
	put_bool(&w, "color", resolve(c, NULL, NULL, "output", "color", "true"));
	put_setting(&w, "default_image", config_file_get(c, "defaults", "image"), false);
	put_setting(&w, "default_timeout", config_file_get(c, "defaults", "timeout"), false);
	json_put_cstr(&w, "config_path", path);
	json_put_bool(&w, "config_file_exists", access(path, F_OK) == 0);
	json_write_object_end(&w);
	return json_writer_end(&w) < 0 ? CLI_FAILED : show_json(c, buf_view(&json), NULL);
}

/* ---- set ---- */

static int check_value(struct cli *c, const char *name, const char *value, char **ret)
{
	uint32_t n;

	for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
		osb_cleanup(buf_done) struct buf text = BUF_INIT(TEXT_MAX);
		char full[64];

		snprintf(full, sizeof(full), "%s.%s", settings[i].section, settings[i].key);
		if (strcmp(full, name) != 0)
			continue;
		if (settings[i].kind == A_NUMBER && !num_parse_u32(view_of(value), &n))
			return cli_usage(c, "%s is a number", name);
		if (settings[i].kind == A_BOOL && strcmp(value, "true") != 0 &&
		    strcmp(value, "false") != 0)
			return cli_usage(c, "%s is true or false", name);
		if (settings[i].kind != A_STRING) {
			*ret = mem_strdup(value);
			return 0;
		}
		/* What JSON writes, TOML reads. */
		if (buf_append_char(&text, '"') < 0 || json_escape(&text, view_of(value)) < 0 ||
		    buf_append_char(&text, '"') < 0)
			return cli_usage(c, "the value is too long");
		*ret = buf_take_str(&text);
		return 0;
	}
	return cli_usage(c, "there is no setting '%s'", name);
}

/* Is this line `key = ...`, maybe behind a `#`? */
static bool sets(struct view line, const char *key)
{
	struct view v = view_trim(line);

	if (view_starts(v, VIEW("#")))
		v = view_trim(view_skip(v, 1));
	return view_starts(v, view_of(key)) &&
	       view_starts(view_trim(view_skip(v, strlen(key))), VIEW("="));
}

/* Replaces the line in its section, or adds one; comments and all else stay. */
static int rewrite(const char *old, const char *section, const char *key, const char *value,
		   struct buf *out)
{
	struct view rest = view_of(old), line;
	bool inside = false, done = false;
	char header[64];
	int r = 0;

	snprintf(header, sizeof(header), "[%s]", section);
	while (r == 0 && view_split(&rest, '\n', &line)) {
		bool is_header = view_starts(view_trim(line), VIEW("["));

		if (inside && !done && is_header) {
			r = buf_printf(out, "%s = %s\n", key, value);
			done = true;
		}
		if (is_header)
			inside = view_is(view_trim(line), header);
		if (r == 0 && inside && !done && sets(line, key)) {
			r = buf_printf(out, "%s = %s\n", key, value);
			done = true;
		} else if (r == 0) {
			r = buf_printf(out, VIEW_FMT "\n", VIEW_ARG(line));
		}
	}
	if (r == 0 && !done)
		r = inside ? buf_printf(out, "%s = %s\n", key, value)
			   : buf_printf(out, "\n%s\n%s = %s\n", header, key, value);
	return r;
}

int config_set(struct cli *c)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(2 * TEXT_MAX);
	osb_cleanup(mem_freep) char *path = path_of(c), *old = read_text(path), *value = NULL;
	osb_cleanup(mem_freep) char *section = mem_strdup(c->args[0]);
	char *dot = strchr(section, '.');
	int code = check_value(c, c->args[0], c->args[1], &value);

	if (code)
		return code;
	*dot = '\0';
	if (rewrite(old ? old : template, section, dot + 1, value, &text) < 0)
		return cli_error(c, "%s is too large", path);
	code = write_text(c, path, buf_view(&text));
	if (code)
		return code;
	return show_done(c, "Set %s = %s", c->args[0],
			 strcmp(dot + 1, "api_key") == 0 ? "***" : c->args[1]);
}
