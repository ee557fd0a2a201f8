/*
 * cli/snake.c - see snake.h.
 */
#include "cli/snake.h"

#include <opensandbox/client.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "codec/json.h"
#include "codec/json_copy.h"
#include "codec/json_writer.h"

static bool is_user_s(struct view key)
{
	return view_is(key, "metadata") || view_is(key, "headers") || view_is(key, "extensions") ||
	       view_is(key, "labels");
}

static void write_key(struct json_writer *w, struct view key)
{
	char name[256];
	size_t n = 0;

	for (size_t i = 0; i < key.len && n + 2 < sizeof(name); i++) {
		bool upper = key.p[i] >= 'A' && key.p[i] <= 'Z';

		if (upper && i)
			name[n++] = '_';
		name[n++] = (char)(upper ? key.p[i] + 32 : key.p[i]);
	}
	json_write_key_view(w, view_mem(name, n));
}

void snake_write(struct json_writer *w, const struct json *v)
{
	const struct json *value;
	struct view key;
	void *it = NULL;

	if (!v || (json_kind(v) != JSON_OBJECT && json_kind(v) != JSON_ARRAY)) {
		json_write_json(w, v);
		return;
	}
	if (json_kind(v) == JSON_ARRAY) {
		json_write_array(w);
		for (size_t i = 0; i < json_len(v); i++)
			snake_write(w, json_at(v, i));
		json_write_array_end(w);
		return;
	}
	json_write_object(w);
	while (json_next(v, &it, &key, &value)) {
		write_key(w, key);
		if (is_user_s(key))
			json_write_json(w, value);
		else
			snake_write(w, value);
	}
	json_write_object_end(w);
}

int snake_show(struct cli *c, char *text, const char *columns)
{
	osb_cleanup(buf_done) struct buf json = BUF_INIT(CLI_JSON_MAX);
	osb_cleanup(json_freep) struct json *v = NULL;
	struct err e = ERR_NONE;
	struct json_writer w;
	int r = json_parse(view_of(text), 0, &v, &e);

	osb_free(text);
	if (r < 0)
		return cli_error(c, "the server's answer is no JSON: %s", e.msg);
	json_writer_init(&w, &json);
	snake_write(&w, v);
	return json_writer_end(&w) < 0 ? CLI_FAILED : show_json(c, buf_view(&json), columns);
}
