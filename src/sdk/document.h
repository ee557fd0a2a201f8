/*
 * sdk/document.h - an answer of JSON, and the structure that is made of it: freed together.
 */
#pragma once

#include <opensandbox/client.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/view.h"

struct answer;
struct ask;
struct json;

struct document {
	struct arena mem; /* what the structure points to */
	struct json *json;
	const char *text;
	bool tls; /* what the client speaks where nothing else is said */
};

/* Strings of the document, as the structure wants them.  NULL for what is not there. */
const char *document_str(struct document *d, const struct json *v, const char *key);
int64_t document_int(const struct json *v, const char *key); /* 0 */
const char *const *document_strings(struct document *d, const struct json *array);
const osb_pair *document_pairs(struct document *d, const struct json *object, size_t *ret_n);
const char *document_text_of(struct document *d, const struct json *v); /* JSON again */

/* Of {"items": [...], "pagination": {...}}. */
struct document_page {
	size_t n;
	int page, page_size, total_items, total_pages;
	bool has_next;
};

/* Pointers to `size` zeroed bytes each, filled in by `read` (non-zero = a failure); NULL = it is no
 * page. */
typedef int document_item_fn(struct document *d, const struct json *v, void *ret);
void *document_page(struct document *d, size_t size, document_item_fn *read,
		    struct document_page *ret);

/* Asks, and reads the answer; *ret is ended with document_done(). */
osb_must_check int document_ask(osb_client *c, const struct ask *q, const osb_call *call,
				struct document *ret, osb_error *e);
void document_done(struct document *d);

/*
 * A structure for the caller, read out of an answer and freed with it: `read` fills in `size`
 * zeroed bytes.  Non-zero from `read` is a failure: the answer lacks what it must have.
 */
typedef int object_read_fn(struct document *d, void *ret);
osb_must_check int object_ask(osb_client *c, const struct ask *q, const osb_call *call, size_t size,
			      object_read_fn *read, void **ret, osb_error *e);
void object_free(void *object); /* accepts NULL */
