/*
 * server/config.c - reads the configuration: the defaults of the schema, then the file over them.
 */
#include "server/config.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/num.h"
#include "codec/counted_names.h"
#include "codec/image_ref.h"
#include "codec/toml.h"
#include "server/config_images.h"
#include "server/config_ingress.h"
#include "server/config_schema.h"
#include "server/egress_settings.h"

#define ARENA_MAX     ((size_t)16 << 20)
#define ALIASES_MAX   256
#define SENTENCE_MAX  256
#define FULL_NAME_MAX 128

struct reader {
	struct config *config;
	config_warn_fn *warn;
	void *arg;
};

/* ---- values ---- */

static void free_aliases(struct config *c)
{
	for (size_t i = 0; i < c->aliases_n; i++) {
		free(c->aliases[i].pattern);
		free(c->aliases[i].image);
	}
	free(c->aliases);
	c->aliases = NULL;
	c->aliases_n = 0;
}

static bool is_choice(const struct config_key *k, struct view text)
{
	for (const char *const *c = k->choices; c && *c; c++)
		if (view_iis(text, *c))
			return true;
	return !k->choices;
}

static int take_string(const struct config_key *k, const struct toml *table, char **at,
		       struct err *e)
{
	unsigned line;
	struct view text;
	int r = toml_field_string(table, k->name, &text, e);

	if (r <= 0)
		return r;
	line = toml_get(table, k->name)->line;
	if ((text.len || k->initial) && !is_choice(k, text))
		return err_set(e, -EINVAL,
			       "line %u: %s.%s cannot be '" VIEW_FMT "' here; it can be %s", line,
			       k->section, k->name, VIEW_ARG(view_first(text, 64)), k->choices[0]);
	if (text.len == 0 && k->initial)
		return err_set(e, -EINVAL, "line %u: %s.%s must not be empty", line, k->section,
			       k->name);
	free(*at);
	*at = text.len ? mem_strndup(text.p, text.len) : NULL;
	return 0;
}

static int take_strings(const struct config_key *k, const struct toml *table, struct strv *at,
			struct err *e)
{
	const struct toml *array = NULL;
	int r = toml_field_array(table, k->name, &array, e);

	if (r <= 0)
		return r;
	strv_done(at);
	*at = STRV_INIT;
	for (const struct toml *v = array->first; v; v = v->next) {
		if (v->kind != TOML_STRING || view_has(v->text, '\0'))
			return err_set(e, -EINVAL, "line %u: %s.%s must hold strings, not %s",
				       v->line, k->section, k->name, toml_kind_name(v->kind));
		strv_add_view(at, v->text);
	}
	return 0;
}

static bool is_image(struct view text)
{
	struct err e = ERR_NONE;
	struct image_ref ref;

	return view_is(text, "host") || image_ref_parse(text, &ref, &e) == 0;
}

/* Every member is an alias. */
static int take_aliases(const struct toml *table, struct config *c, struct err *e)
{
	if (!table)
		return 0;
	if (table->len > ALIASES_MAX)
		return err_set(e, -E2BIG, "line %u: at most %d aliases are possible", table->line,
			       ALIASES_MAX);
	free_aliases(c);
	c->aliases = mem_new_array(struct config_alias, table->len + 1);
	for (const struct toml *v = table->first; v; v = v->next) {
		if (v->kind != TOML_STRING || !is_image(v->text) || v->key.len == 0 ||
		    view_has(v->key, '\0'))
			return err_set(e, -EINVAL,
				       "line %u: an alias is a pattern and an image, like "
				       "\"opensandbox/code-interpreter:*\" = \"host\"",
				       v->line);
		c->aliases[c->aliases_n++] = (struct config_alias){
			.pattern = mem_strndup(v->key.p, v->key.len),
			.image = mem_strndup(v->text.p, v->text.len),
		};
	}
	return 0;
}

/* Sets one key if `table` has it. */
static int take(const struct config_key *k, const struct toml *table, struct config *c,
		struct err *e)
{
	void *at = (char *)c + k->at;
	int r = 0;

	switch (k->type) {
	case CONFIG_STRING:
		r = take_string(k, table, at, e);
		break;
	case CONFIG_INT:
		r = toml_field_int(table, k->name, k->min, k->max, at, e);
		break;
	case CONFIG_BOOL:
		r = toml_field_bool(table, k->name, at, e);
		break;
	case CONFIG_STRINGS:
		r = take_strings(k, table, at, e);
		break;
	case CONFIG_SIZE:
		r = config_take_size(k, table, at, e);
		break;
	case CONFIG_MIRRORS:
		r = config_take_mirrors(table, c, e);
		break;
	case CONFIG_KEYS:
		r = config_take_keys(table, c, e);
		break;
	default:
		r = take_aliases(table, c, e);
	}
	return MIN(r, 0);
}

static int set_default(const struct config_key *k, struct config *c, struct err *e)
{
	osb_cleanup(arena_done) struct arena a;
	osb_cleanup(mem_freep) char *text = NULL;
	const struct toml *table;
	struct toml *root;
	int r;

	arena_init(&a, 65536);
	if (!k->initial)
		return 0;
	text = mem_printf("%s = %s\n", k->type == CONFIG_ALIASES ? "table" : k->name, k->initial);
	r = toml_parse(view_of(text), &a, &root, e);
	if (r < 0)
		return r;
	table = k->type == CONFIG_ALIASES ? toml_get(root, "table") : root;
	return take(k, table, c, e);
}

/* ---- the file ---- */

/* The table "a.b" of the file, NULL if it is not there. */
static int find_section(const struct toml *root, const char *name, const struct toml **ret,
			struct err *e)
{
	struct view rest = view_of(name), part;
	const struct toml *table = root;
	char key[64];

	while (table && view_split(&rest, '.', &part)) {
		const struct toml *inner = NULL;
		int r;

		snprintf(key, sizeof(key), VIEW_FMT, VIEW_ARG(part));
		r = toml_field_table(table, key, &inner, e);
		if (r < 0)
			return r;
		table = inner;
	}
	*ret = table;
	return 0;
}

static void warn(const struct reader *r, unsigned line, const char *full, const char *why)
{
	char sentence[SENTENCE_MAX];

	if (why)
		snprintf(sentence, sizeof(sentence), "line %u: '%s' has no effect here: %s", line,
			 full, why);
	else
		snprintf(sentence, sizeof(sentence), "line %u: there is no '%s', ignoring it", line,
			 full);
	r->warn(r->arg, sentence);
}

static bool is_section(const char *full)
{
	for (const struct config_key *k = config_keys; k->section; k++)
		if (strcmp(k->section, full) == 0)
			return true;
	return false;
}

/* Whatever its keys are, they are read. */
static bool is_open_section(const char *full)
{
	for (const struct config_key *k = config_keys; k->section; k++)
		if (config_is_section(k->type) && strcmp(k->section, full) == 0)
			return true;
	return false;
}

/* Says what of the file nobody reads. */
static void warn_of_unread(const struct reader *r, const struct toml *table, const char *prefix)
{
	for (const struct toml *v = table->first; v; v = v->next) {
		const struct config_idle *idle;
		char full[FULL_NAME_MAX];

		snprintf(full, sizeof(full), "%s%s" VIEW_FMT, prefix, prefix[0] ? "." : "",
			 VIEW_ARG(view_first(v->key, 60)));
		idle = config_idle_find(view_of(full));
		if (idle)
			warn(r, v->line, full, idle->why);
		else if (v->kind == TOML_TABLE && is_open_section(full))
			continue;
		else if (v->kind == TOML_TABLE && is_section(full))
			warn_of_unread(r, v, full);
		else if (!config_key_find(view_of(full)))
			warn(r, v->line, full, NULL);
	}
}

/* Asked for a stronger wall than we have: better no server than a weaker one. */
static int refuse_secure_runtime(const struct toml *root, struct err *e)
{
	const struct toml *type = toml_get(toml_get(root, "secure_runtime"), "type");

	if (!type || (type->kind == TOML_STRING && type->text.len == 0))
		return 0;
	return err_set(e, -EINVAL,
		       "line %u: secure_runtime.type cannot be honoured: the native runtime has no "
		       "second kernel; leave it out to use namespaces, seccomp and cgroups",
		       type->line);
}

static int read_file(const char *path, struct buf *out, struct err *e)
{
	osb_cleanup(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = 1;

	while (fd >= 0 && n > 0) {
		char *p = buf_reserve(out, 4096);

		if (!p)
			return err_set(e, -E2BIG, "the configuration is too large");
		n = read(fd, p, 4096);
		if (n > 0)
			buf_commit(out, (size_t)n);
	}
	return fd < 0 || n < 0 ? err_set(e, -errno, "%m") : 0;
}

static int apply_file(const struct reader *reader, struct view text, struct err *e)
{
	osb_cleanup(arena_done) struct arena a;
	struct toml *root;
	int r;

	arena_init(&a, ARENA_MAX);
	r = toml_parse(text, &a, &root, e);
	if (r == 0)
		r = refuse_secure_runtime(root, e);
	for (const struct config_key *k = config_keys; r == 0 && k->section; k++) {
		const struct toml *table = NULL;

		r = find_section(root, k->section, &table, e);
		if (r == 0 && table)
			r = take(k, table, reader->config, e);
	}
	if (r == 0)
		warn_of_unread(reader, root, "");
	return r;
}

/* ---- what a type cannot say ---- */

static int check_subnet(const char *subnet, struct err *e)
{
	struct view rest = view_of(subnet), ip;
	struct in_addr a;
	uint32_t bits;
	char text[16];

	if (view_split(&rest, '/', &ip) && ip.len < sizeof(text) && num_parse_u32(rest, &bits) &&
	    bits >= 8 && bits <= 28) {
		snprintf(text, sizeof(text), VIEW_FMT, VIEW_ARG(ip));
		if (inet_pton(AF_INET, text, &a) == 1 &&
		    (ntohl(a.s_addr) & (UINT32_MAX >> bits)) == 0)
			return 0;
	}
	return err_set(e, -EINVAL,
		       "native.subnet must be an IPv4 network of 8 to 28 bits like "
		       "\"10.213.0.0/16\", not '%s'",
		       subnet);
}

static bool is_in(struct view path, struct view directory)
{
	return view_starts(path, directory) &&
	       (path.len == directory.len || path.p[directory.len] == '/');
}

/* Sandboxes may write there: the server's own files, or all of the host's, cannot be meant. */
static int check_host_paths(const struct config *c, struct err *e)
{
	for (size_t i = 0; i < c->allowed_host_paths.len; i++) {
		struct view path = view_of(c->allowed_host_paths.v[i]),
			    state = view_of(c->state_dir);

		while (path.len > 0 && path.p[path.len - 1] == '/')
			path.len--;
		if (path.len < 2 || path.p[0] != '/' ||
		    view_find_view(path, VIEW("/../")) < path.len || view_ends(path, VIEW("/..")))
			return err_set(
				e, -EINVAL,
				"storage.allowed_host_paths must hold absolute paths without "
				"'..', and not '/'; '%s' is none",
				c->allowed_host_paths.v[i]);
		if (is_in(state, path) || is_in(path, state))
			return err_set(e, -EINVAL,
				       "storage.allowed_host_paths: '%s' and native.state_dir lie "
				       "in each other",
				       c->allowed_host_paths.v[i]);
	}
	return 0;
}

static int check(struct config *c, struct err *e)
{
	unsigned char address[sizeof(struct in6_addr)];

	assert(c->host); /* it has a default */
	if (strcmp(c->host, "localhost") == 0) {
		free(c->host);
		c->host = mem_strdup("127.0.0.1");
	}
	if (inet_pton(AF_INET, c->host, address) != 1 && inet_pton(AF_INET6, c->host, address) != 1)
		return err_set(e, -EINVAL, "server.host must be an IP address, not '%s'", c->host);
	if (c->state_dir[0] != '/')
		return err_set(e, -EINVAL, "native.state_dir must be an absolute path, not '%s'",
			       c->state_dir);
	if (c->code_pool && counted_names_check(view_of(c->code_pool), CONFIG_CODE_POOL_MAX, e) < 0)
		return err_ctx(e, "native.code_pool");
	if (check_host_paths(c, e) < 0 || config_check_ingress(c, e) < 0)
		return e->code;
	return check_subnet(c->subnet, e);
}

int config_load(const char *path, config_warn_fn *warn_fn, void *arg, struct config *ret,
		struct err *e)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(TOML_MAX_BYTES);
	struct config c = {0};
	struct reader reader = {.config = &c, .warn = warn_fn, .arg = arg};
	int r = 0;

	for (const struct config_key *k = config_keys; r == 0 && k->section; k++)
		r = set_default(k, &c, e);
	if (r == 0)
		r = read_file(path, &text, e);
	if (r == 0)
		r = apply_file(&reader, buf_view(&text), e);
	if (r == 0)
		r = check(&c, e);
	if (r == 0)
		r = egress_settings_load(&c, e);
	if (r == 0)
		r = config_read_docker(&c, e);
	if (r < 0) {
		config_done(&c);
		return err_ctx(e, "%s", path);
	}
	*ret = c;
	return 0;
}

void config_done(struct config *c)
{
	for (const struct config_key *k = config_keys; k->section; k++) {
		void *at = (char *)c + k->at;

		if (k->type == CONFIG_STRING)
			free(*(char **)at);
		else if (k->type == CONFIG_STRINGS)
			strv_done(at);
	}
	free_aliases(c);
	config_free_mirrors(c);
	config_free_keys(c);
	if (c->docker_config_text)
		explicit_bzero(c->docker_config_text, strlen(c->docker_config_text));
	free(c->docker_config_text);
	*c = (struct config){0};
}
