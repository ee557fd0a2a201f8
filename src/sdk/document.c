/*
 * sdk/document.c - see document.h.
 */
#include "sdk/document.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "codec/json.h"
#include "codec/json_copy.h"
#include "codec/json_writer.h"
#include "sdk/ask.h"
#include "sdk/client_int.h"
#include "sdk/fail.h"

#define DOCUMENT_MAX (512u << 20) /* what an answer of 64 MiB can become */

const char *document_str(struct document *d, const struct json *v, const char *key)
{
	struct view text;

	return json_str(json_get(v, key), &text) ? arena_str(&d->mem, text) : NULL;
}

int64_t document_int(const struct json *v, const char *key)
{
	int64_t n = 0;

	(void)json_int(json_get(v, key), &n);
	return n;
}

const char *const *document_strings(struct document *d, const struct json *array)
{
	size_t n = array && json_kind(array) == JSON_ARRAY ? json_len(array) : 0, used = 0;
	const char **all = arena_alloc(&d->mem, (n + 1) * sizeof(*all));

	for (size_t i = 0; all && i < n; i++) {
		struct view text;

		if (json_str(json_at(array, i), &text))
			all[used++] = arena_str(&d->mem, text);
	}
	return all;
}

const osb_pair *document_pairs(struct document *d, const struct json *object, size_t *ret_n)
{
	size_t n = object && json_kind(object) == JSON_OBJECT ? json_len(object) : 0;
	osb_pair *all = arena_alloc(&d->mem, (n + 1) * sizeof(*all));
	const struct json *value;
	struct view key, text;
	void *it = NULL;

	*ret_n = 0;
	while (all && n && json_next(object, &it, &key, &value)) {
		if (!json_str(value, &text))
			continue;
		all[*ret_n].name = arena_str(&d->mem, key);
		all[(*ret_n)++].value = arena_str(&d->mem, text);
	}
	return all;
}

const char *document_text_of(struct document *d, const struct json *v)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(DOCUMENT_MAX);
	struct json_writer w;

	json_writer_init(&w, &text);
	json_write_json(&w, v);
	return json_writer_end(&w) < 0 ? NULL : arena_str(&d->mem, buf_view(&text));
}

void *document_page(struct document *d, size_t size, document_item_fn *read,
		    struct document_page *ret)
{
	const struct json *items = json_get(d->json, "items");
	const struct json *about = json_get(d->json, "pagination");
	void **all = NULL;

	*ret = (struct document_page){0};
	if (items && json_kind(items) == JSON_ARRAY)
		all = arena_alloc(&d->mem, (json_len(items) + 1) * sizeof(void *));
	if (!all)
		return NULL;
	for (size_t i = 0; i < json_len(items); i++) {
		all[i] = arena_alloc(&d->mem, size);
		if (!all[i] || read(d, json_at(items, i), all[i]) != 0)
			return NULL;
		ret->n++;
	}
	ret->page = (int)document_int(about, "page");
	ret->page_size = (int)document_int(about, "pageSize");
	ret->total_items = (int)document_int(about, "totalItems");
	ret->total_pages = (int)document_int(about, "totalPages");
	(void)json_bool(json_get(about, "hasNextPage"), &ret->has_next);
	return all;
}

int document_ask(osb_client *c, const struct ask *q, const osb_call *call, struct document *ret,
		 osb_error *e)
{
	struct answer answer;
	struct err why = ERR_NONE;
	int r;

	*ret = (struct document){.tls = c->tls};
	arena_init(&ret->mem, DOCUMENT_MAX);
	answer_init(&answer);
	r = ask_whole(c, q, call, &answer, e);
	if (r == 0) {
		ret->text = arena_str(&ret->mem, buf_view(&answer.body));
		if (json_parse(buf_view(&answer.body), 0, &ret->json, &why) < 0)
			r = fail(e, OSB_ERR_PROTOCOL, "the server's answer is no JSON: %s",
				 why.msg);
	}
	answer_done(&answer);
	if (r < 0)
		document_done(ret);
	return r;
}

void document_done(struct document *d)
{
	json_free(d->json);
	arena_done(&d->mem);
	*d = (struct document){0};
}

/* ---- objects ---- */

/* In front of what the caller sees. */
struct object {
	struct document document;
	_Alignas(16) char pub[];
};

int object_ask(osb_client *c, const struct ask *q, const osb_call *call, size_t size,
	       object_read_fn *read, void **ret, osb_error *e)
{
	struct object *o = mem_zero(1, sizeof(*o) + size);
	int r = document_ask(c, q, call, &o->document, e);

	if (r == 0 && read(&o->document, o->pub) != 0) {
		document_done(&o->document);
		r = fail(e, OSB_ERR_PROTOCOL, "the server's answer lacks what it must have");
	}
	if (r < 0)
		free(o);
	else
		*ret = o->pub;
	return r;
}

void object_free(void *pub)
{
	struct object *o;

	if (!pub)
		return;
	o = container_of((char(*)[])pub, struct object, pub);
	document_done(&o->document);
	free(o);
}
