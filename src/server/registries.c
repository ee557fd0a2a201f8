/*
 * server/registries.c - mirrors, plain-HTTP registries, the operator's Docker credentials.
 */
#include "server/registries.h"

#include <string.h>

#include "base/err.h"
#include "codec/json.h"
#include "codec/json_copy.h"
#include "codec/json_writer.h"
#include "server/config.h"

static void put_strings(struct json_writer *w, const struct strv *s)
{
	json_write_array(w);
	for (size_t i = 0; i < s->len; i++)
		json_write_cstr(w, s->v[i]);
	json_write_array_end(w);
}

void registries_put(struct json_writer *w, const struct config *config, const char *auth)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	struct err e = ERR_NONE;

	json_write_key(w, "registries");
	json_write_object(w);
	json_write_key(w, "mirrors");
	json_write_object(w);
	for (size_t i = 0; i < config->mirrors_n; i++) {
		json_write_key(w, config->mirrors[i].registry);
		put_strings(w, &config->mirrors[i].urls);
	}
	json_write_object_end(w);
	json_write_key(w, "insecure");
	put_strings(w, &config->insecure_registries);
	if (config->docker_config_text)
		json_put_cstr(w, "config", config->docker_config_text);
	json_write_object_end(w);
	if (auth && json_parse(view_of(auth), 0, &v, &e) == 0) {
		json_write_key(w, "auth");
		json_write_json(w, v);
	}
}
