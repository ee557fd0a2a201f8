/*
 * sdk/files.c - what a sandbox's files are called, and who may read them.
 */
#include <opensandbox/files.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "sdk/document.h"
#include "sdk/fail.h"
#include "sdk/files_int.h"
#include "sdk/sandbox_int.h"

#define BODY_MAX (16u << 20)

/* ---- modes: the octal digits, written as a decimal number ---- */

int64_t file_mode_digits(unsigned mode)
{
	int64_t n = 0, place = 1;

	for (; mode; mode >>= 3, place *= 10)
		n += (int64_t)(mode & 7) * place;
	return n;
}

static unsigned mode_of_digits(int64_t digits)
{
	unsigned mode = 0;

	for (unsigned shift = 0; digits > 0 && shift < 15; digits /= 10, shift += 3)
		mode |= (unsigned)(digits % 10 & 7) << shift;
	return mode;
}

void file_mode_write(struct json_writer *w, const osb_file_mode *mode)
{
	if (!mode)
		return;
	if (mode->mode)
		json_put_int(w, "mode", file_mode_digits(mode->mode));
	if (mode->owner)
		json_put_cstr(w, "owner", mode->owner);
	if (mode->group)
		json_put_cstr(w, "group", mode->group);
}

/* ---- lists ---- */

static void read_info(struct document *d, const struct json *v, osb_file_info *ret)
{
	*ret = (osb_file_info){
		.path = document_str(d, v, "path"),
		.type = document_str(d, v, "type"),
		.size = document_int(v, "size"),
		.mode = mode_of_digits(document_int(v, "mode")),
		.owner = document_str(d, v, "owner"),
		.group = document_str(d, v, "group"),
		.modified_at = document_str(d, v, "modified_at"),
		.created_at = document_str(d, v, "created_at"),
	};
	if (!ret->type)
		ret->type = "file";
}

/* An array, or an object whose members are the files. */
static int read_list(struct document *d, void *ret)
{
	osb_file_list *l = ret;
	const struct json *all = d->json, *value;
	osb_file_info *items = arena_alloc(&d->mem, (json_len(all) + 1) * sizeof(*items));
	struct view key;
	void *it = NULL;

	if (!items)
		return -1;
	l->json = d->text;
	l->items = items;
	if (json_kind(all) == JSON_ARRAY)
		for (size_t i = 0; i < json_len(all); i++)
			read_info(d, json_at(all, i), &items[l->n++]);
	else if (json_kind(all) == JSON_OBJECT)
		while (json_next(all, &it, &key, &value))
			read_info(d, value, &items[l->n++]);
	return 0;
}

static int ask_list(osb_sandbox *s, struct asking *q, const osb_call *call, osb_file_list **ret,
		    osb_error *e)
{
	return asking_object(s->client, q, call, sizeof(**ret), read_list, (void **)ret, e);
}

void osb_file_list_free(osb_file_list *l)
{
	object_free(l);
}

int osb_file_stat(osb_sandbox *s, const char *const *paths, const osb_call *call,
		  osb_file_list **ret, osb_error *e)
{
	struct asking q;
	int r = asking_exec(s, OSB_PORT_EXEC, "GET", "/files/info", call, &q, e);

	for (; r == 0 && *paths; paths++)
		asking_param(&q, "path", *paths);
	if (r == 0)
		r = ask_list(s, &q, call, ret, e);
	asking_done(&q);
	return r;
}

int osb_file_search(osb_sandbox *s, const char *directory, const char *pattern,
		    const osb_call *call, osb_file_list **ret, osb_error *e)
{
	struct asking q;
	int r = asking_exec(s, OSB_PORT_EXEC, "GET", "/files/search", call, &q, e);

	if (r == 0) {
		asking_param(&q, "path", directory);
		asking_param(&q, "pattern", pattern);
		r = ask_list(s, &q, call, ret, e);
	}
	asking_done(&q);
	return r;
}

int osb_directory_list(osb_sandbox *s, const char *path, int depth, const osb_call *call,
		       osb_file_list **ret, osb_error *e)
{
	struct asking q;
	char text[16];
	int r = asking_exec(s, OSB_PORT_EXEC, "GET", "/directories/list", call, &q, e);

	if (r == 0) {
		snprintf(text, sizeof(text), "%d", depth);
		asking_param(&q, "path", path);
		asking_param(&q, "depth", text);
		r = ask_list(s, &q, call, ret, e);
	}
	asking_done(&q);
	return r;
}

/* ---- changes ---- */

static int delete_all(osb_sandbox *s, const char *route, const char *const *paths,
		      const osb_call *call, osb_error *e)
{
	struct asking q;
	int r = asking_exec(s, OSB_PORT_EXEC, "DELETE", route, call, &q, e);

	for (; r == 0 && *paths; paths++)
		asking_param(&q, "path", *paths);
	if (r == 0)
		r = asking_do(s->client, &q, call, e);
	asking_done(&q);
	return r;
}

int osb_file_delete(osb_sandbox *s, const char *const *paths, const osb_call *call, osb_error *e)
{
	return delete_all(s, "/files", paths, call, e);
}

int osb_directory_delete(osb_sandbox *s, const char *const *paths, const osb_call *call,
			 osb_error *e)
{
	return delete_all(s, "/directories", paths, call, e);
}

static int post(osb_sandbox *s, const char *route, struct json_writer *w, const struct buf *body,
		const osb_call *call, osb_error *e)
{
	struct asking q;
	int r;

	if (json_writer_end(w) < 0)
		return fail(e, OSB_ERR_INVALID, "the request is larger than %u bytes", BODY_MAX);
	r = asking_exec(s, OSB_PORT_EXEC, "POST", route, call, &q, e);
	if (r == 0) {
		asking_json(&q, body);
		r = asking_do(s->client, &q, call, e);
	}
	asking_done(&q);
	return r;
}

int osb_file_move(osb_sandbox *s, const char *from, const char *to, const osb_call *call,
		  osb_error *e)
{
	osb_cleanup(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	struct json_writer w;

	json_writer_init(&w, &body);
	json_write_array(&w);
	json_write_object(&w);
	json_put_cstr(&w, "src", from);
	json_put_cstr(&w, "dest", to);
	json_write_object_end(&w);
	json_write_array_end(&w);
	return post(s, "/files/mv", &w, &body, call, e);
}

/* {path: {mode, owner, group}} for each. */
static int post_modes(osb_sandbox *s, const char *route, const char *const *paths,
		      const osb_file_mode *mode, const osb_call *call, osb_error *e)
{
	osb_cleanup(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	struct json_writer w;

	json_writer_init(&w, &body);
	json_write_object(&w);
	for (; *paths; paths++) {
		json_write_key(&w, *paths);
		json_write_object(&w);
		file_mode_write(&w, mode);
		json_write_object_end(&w);
	}
	json_write_object_end(&w);
	return post(s, route, &w, &body, call, e);
}

int osb_file_set_mode(osb_sandbox *s, const char *path, const osb_file_mode *mode,
		      const osb_call *call, osb_error *e)
{
	const char *paths[] = {path, NULL};

	return post_modes(s, "/files/permissions", paths, mode, call, e);
}

int osb_directory_create(osb_sandbox *s, const char *const *paths, const osb_file_mode *mode,
			 const osb_call *call, osb_error *e)
{
	return post_modes(s, "/directories", paths, mode, call, e);
}

int osb_file_replace(osb_sandbox *s, const char *path, const char *old, const char *new_text,
		     const osb_call *call, int64_t *ret_count, osb_error *e)
{
	osb_cleanup(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	struct json_writer w;
	struct document d;
	struct asking q;
	int r = asking_exec(s, OSB_PORT_EXEC, "POST", "/files/replace?verbose=true", call, &q, e);

	json_writer_init(&w, &body);
	json_write_object(&w);
	json_write_key(&w, path);
	json_write_object(&w);
	json_put_cstr(&w, "old", old);
	json_put_cstr(&w, "new", new_text);
	json_write_object_end(&w);
	json_write_object_end(&w);
	if (r == 0 && json_writer_end(&w) < 0)
		r = fail(e, OSB_ERR_INVALID, "the texts are larger than %u bytes", BODY_MAX);
	if (r == 0) {
		asking_json(&q, &body);
		q.ask.target = buf_view(&q.target);
		r = document_ask(s->client, &q.ask, call, &d, e);
	}
	if (r == 0) {
		const struct json *entry = json_get(d.json, path);

		if (ret_count)
			*ret_count = document_int(entry, "replacedCount");
		document_done(&d);
	}
	asking_done(&q);
	return r;
}
