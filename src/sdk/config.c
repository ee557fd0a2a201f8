/*
 * sdk/config.c - a client's configuration: what was given, the environment, the file, the defaults.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <opensandbox/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/num.h"
#include "codec/http1.h"
#include "codec/toml.h"
#include "sdk/client_int.h"
#include "sdk/fail.h"

#define TIMEOUT_MS 30000
#define RETRIES	   3
#define FILE_MAX   (1u << 20)

/* Strings live in the arena, the environment or the caller's memory. */
struct found {
	struct arena mem;
	const char *domain, *protocol, *api_key;
	uint32_t timeout_ms;
	int proxy; /* 1, -1, or 0 = not said */
};

/* An empty text says nothing. */
static const char *or_else(const char *first, const char *second)
{
	if (first && first[0])
		return first;
	return second && second[0] ? second : NULL;
}

/* ---- the file ---- */

static char *default_file(struct arena *mem)
{
	const char *home = getenv("HOME");

	return home && home[0] ? arena_printf(mem, "%s/.opensandbox/config.toml", home) : NULL;
}

static int read_file(const char *path, struct buf *out, struct err *e)
{
	osb_cleanup(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return err_set(e, -errno, "%s: %m", path);
	do {
		char *room = buf_reserve(out, 4096);

		if (!room)
			return err_set(e, -E2BIG, "%s is too large for a configuration", path);
		n = read(fd, room, 4096);
		if (n < 0)
			return err_set(e, -errno, "%s: %m", path);
		buf_commit(out, (size_t)n);
	} while (n > 0);
	return 0;
}

static int field(struct found *f, const struct toml *table, const char *name, const char **ret,
		 struct err *e)
{
	struct view text;
	int r = toml_field_string(table, name, &text, e);

	if (r > 0 && !(*ret && (*ret)[0]))
		*ret = arena_str(&f->mem, text);
	return r;
}

static int take_table(struct found *f, const struct toml *connection, struct err *e)
{
	int64_t seconds = 0;
	bool proxy = false;
	int r = field(f, connection, "domain", &f->domain, e);

	if (r >= 0)
		r = field(f, connection, "protocol", &f->protocol, e);
	if (r >= 0)
		r = field(f, connection, "api_key", &f->api_key, e);
	if (r >= 0)
		r = toml_field_int(connection, "request_timeout", 1, 86400, &seconds, e);
	if (r > 0 && !f->timeout_ms)
		f->timeout_ms = (uint32_t)seconds * 1000;
	if (r >= 0)
		r = toml_field_bool(connection, "use_server_proxy", &proxy, e);
	if (r > 0 && !f->proxy)
		f->proxy = proxy ? 1 : -1;
	return r;
}

static int from_file(struct found *f, const osb_config *given, struct err *e)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(FILE_MAX);
	const char *path = given->config_file ? given->config_file : default_file(&f->mem);
	const struct toml *connection = NULL;
	struct toml *root;
	int r;

	if (!path || !path[0])
		return 0;
	r = read_file(path, &text, e);
	if (r == -ENOENT && !given->config_file)
		return 0;
	if (r == 0)
		r = toml_parse(buf_view(&text), &f->mem, &root, e);
	if (r == 0)
		r = toml_field_table(root, "connection", &connection, e);
	if (r > 0)
		r = take_table(f, connection, e);
	return r < 0 ? err_ctx(e, "%s", path) : 0;
}

/* ---- the environment ---- */

static int from_environment(struct found *f, struct err *e)
{
	const char *seconds = getenv("OPEN_SANDBOX_REQUEST_TIMEOUT");
	const char *proxy = getenv("OPEN_SANDBOX_USE_SERVER_PROXY");
	uint32_t n;

	f->domain = or_else(f->domain, getenv("OPEN_SANDBOX_DOMAIN"));
	f->protocol = or_else(f->protocol, getenv("OPEN_SANDBOX_PROTOCOL"));
	f->api_key = or_else(f->api_key, getenv("OPEN_SANDBOX_API_KEY"));
	if (!f->timeout_ms && seconds && seconds[0]) {
		if (!num_parse_u32(view_of(seconds), &n) || n < 1 || n > 86400)
			return err_set(e, -EINVAL,
				       "OPEN_SANDBOX_REQUEST_TIMEOUT: '%.40s' is no number of "
				       "seconds from 1 to 86400",
				       seconds);
		f->timeout_ms = n * 1000;
	}
	if (!f->proxy && proxy && proxy[0])
		f->proxy = view_iis(view_of(proxy), "true") || strcmp(proxy, "1") == 0 ? 1 : -1;
	return 0;
}

/* ---- the client ---- */

static int set_server(osb_client *c, const struct found *f, struct err *e)
{
	struct view domain = view_of(or_else(f->domain, "localhost:8080"));
	const char *protocol = or_else(f->protocol, "http");
	size_t n;
	int r;

	c->tls = strcmp(protocol, "https") == 0;
	if (!c->tls && strcmp(protocol, "http") != 0)
		return err_set(e, -EINVAL, "the protocol is '%.20s', neither http nor https",
			       protocol);
	r = address_parse(domain, c->tls, &c->server, e);
	if (r < 0)
		return r;
	c->tls = c->server.tls;
	c->url = c->server.unix_path[0] ? mem_printf("unix:%s", c->server.unix_path)
					: mem_printf("%s://%s%s", c->tls ? "https" : "http",
						     c->server.authority, c->server.base);
	n = strlen(c->server.base);
	if (n + 4 > sizeof(c->server.base))
		return err_set(e, -EINVAL, "the server's address is too long");
	if (!view_ends(view_of(c->server.base), VIEW("/v1")))
		memcpy(c->server.base + n, "/v1", 4);
	return 0;
}

static int copy_headers(osb_client *c, const osb_config *given, struct err *e)
{
	if (given->headers_n > 32)
		return err_set(e, -EINVAL, "more than 32 headers");
	c->headers = mem_new_array(osb_pair, given->headers_n + 1);
	for (size_t i = 0; i < given->headers_n; i++) {
		const osb_pair *h = &given->headers[i];

		if (!h->name || !h->value || !http1_is_token(view_of(h->name)) ||
		    !http1_is_field_value(view_of(h->value)))
			return err_set(e, -EINVAL, "header %zu cannot be sent", i + 1);
		c->headers[c->headers_n].name = mem_strdup(h->name);
		c->headers[c->headers_n++].value = mem_strdup(h->value);
	}
	return 0;
}

static int fill_in(osb_client *c, const osb_config *given, struct found *f, struct err *e)
{
	int r = given->no_environment ? 0 : from_environment(f, e);

	if (r == 0)
		r = from_file(f, given, e);
	if (r == 0)
		r = set_server(c, f, e);
	if (r == 0)
		r = copy_headers(c, given, e);
	if (r == 0 && f->api_key && f->api_key[0]) {
		if (!http1_is_field_value(view_of(f->api_key)))
			return err_set(e, -EINVAL, "the API key holds what no header can");
		c->api_key = mem_strdup(f->api_key);
	}
	c->timeout_ms = f->timeout_ms ? f->timeout_ms : TIMEOUT_MS;
	c->use_server_proxy = f->proxy > 0;
	c->retries = given->retries > 0 ? given->retries : given->retries < 0 ? 0 : RETRIES;
	c->ca_file = given->ca_file ? mem_strdup(given->ca_file) : NULL;
	c->user_agent = mem_strdup(or_else(given->user_agent, "opensandbox-c/" OSB_VERSION));
	return r;
}

int osb_client_new(const osb_config *config, osb_client **ret, osb_error *e)
{
	osb_config given = config ? *config : (osb_config){0};
	struct found f = {
		.domain = given.domain,
		.protocol = given.protocol,
		.api_key = given.api_key,
		.timeout_ms = given.timeout_ms,
		.proxy = given.use_server_proxy,
	};
	osb_client *c = mem_new(osb_client);
	struct err why = ERR_NONE;
	int r;

	fail_none(e);
	arena_init(&f.mem, 4 * FILE_MAX);
	list_init(&c->idle);
	(void)pthread_mutex_init(&c->lock, NULL);
	r = fill_in(c, &given, &f, &why);
	arena_done(&f.mem);
	if (r < 0) {
		osb_client_free(c);
		return fail(e, OSB_ERR_INVALID, "%s", why.msg);
	}
	*ret = c;
	return 0;
}
