/*
 * server/config_images.c - sizes, mirrors, and the credentials that the operator keeps for Docker.
 */
#include "server/config_images.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "codec/quantity.h"
#include "codec/toml.h"
#include "server/config.h"
#include "server/config_schema.h"

#define MIRRORS_MAX	  64
#define URLS_MAX	  8
#define DOCKER_CONFIG_MAX (1 << 20)

int config_take_size(const struct config_key *k, const struct toml *table, uint64_t *at,
		     struct err *e)
{
	struct view text;
	int r = toml_field_string(table, k->name, &text, e);

	if (r <= 0)
		return r;
	if (view_is(text, "0"))
		*at = 0;
	else if (!quantity_bytes(text, at) || *at > INT64_MAX)
		return err_set(e, -EINVAL,
			       "line %u: %s.%s: '" VIEW_FMT "' is no size; write \"50Gi\"",
			       toml_get(table, k->name)->line, k->section, k->name,
			       VIEW_ARG(view_first(text, 40)));
	return 0;
}

static bool is_url(const struct toml *v)
{
	return v->kind == TOML_STRING && !view_has(v->text, '\0') &&
	       (view_starts(v->text, VIEW("http://")) || view_starts(v->text, VIEW("https://")));
}

static int take_mirror(const struct toml *v, struct config_mirror *ret, struct err *e)
{
	bool good = v->key.len > 0 && !view_has(v->key, '\0');

	ret->registry = mem_strndup(v->key.p, v->key.len);
	if (v->kind == TOML_ARRAY) {
		good = good && v->len > 0 && v->len <= URLS_MAX;
		for (const struct toml *url = v->first; good && url; url = url->next) {
			good = is_url(url);
			if (good)
				strv_add_view(&ret->urls, url->text);
		}
	} else if (good && (good = is_url(v))) {
		strv_add_view(&ret->urls, v->text);
	}
	return good ? 0
		    : err_set(e, -EINVAL,
			      "line %u: a mirror is a registry and one to %d addresses, like "
			      "\"docker.io\" = [\"https://mirror.local\"]",
			      v->line, URLS_MAX);
}

int config_take_mirrors(const struct toml *table, struct config *c, struct err *e)
{
	if (!table)
		return 0;
	if (table->len > MIRRORS_MAX)
		return err_set(e, -E2BIG, "line %u: at most %d registries can have mirrors",
			       table->line, MIRRORS_MAX);
	config_free_mirrors(c);
	c->mirrors = mem_new_array(struct config_mirror, table->len + 1);
	for (const struct toml *v = table->first; v; v = v->next) {
		int r = take_mirror(v, &c->mirrors[c->mirrors_n++], e);

		if (r < 0)
			return r;
	}
	return 0;
}

void config_free_mirrors(struct config *c)
{
	for (size_t i = 0; i < c->mirrors_n; i++) {
		free(c->mirrors[i].registry);
		strv_done(&c->mirrors[i].urls);
	}
	free(c->mirrors);
	c->mirrors = NULL;
	c->mirrors_n = 0;
}

int config_read_docker(struct config *c, struct err *e)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(DOCKER_CONFIG_MAX);
	osb_cleanup(fd_closep) int fd = -1;
	ssize_t n = 1;

	if (!c->docker_config)
		return 0;
	fd = open(c->docker_config, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && n > 0) {
		char *p = buf_reserve(&text, 4096);

		if (!p)
			return err_set(e, -E2BIG, "images.docker_config is too large");
		n = read(fd, p, 4096);
		if (n > 0)
			buf_commit(&text, (size_t)n);
	}
	if (fd < 0 || n < 0)
		return err_set(e, -errno, "images.docker_config: %s: %m", c->docker_config);
	c->docker_config_text = buf_take_str(&text);
	return 0;
}
