/*
 * sdk/document.h - an answer of JSON, and the structure that is made of it: freed together.
 */
#pragma once

#include <opensandbox/client.h>
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
};

/* Strings of the document, as the structure wants them.  NULL for what is not there. */
const char *document_str(struct document *d, const struct json *v, const char *key);
int64_t document_int(const struct json *v, const char *key); /* 0 */
const char *const *document_strings(struct document *d, const struct json *array);
const osb_pair *document_pairs(struct document *d, const struct json *object, size_t *ret_n);
const char *document_text_of(struct document *d, const struct json *v); /* JSON again */

/* Asks, and reads the answer; *ret is ended with document_done(). */
osb_must_check int document_ask(osb_client *c, const struct ask *q, const osb_call *call,
				struct document *ret, osb_error *e);
void document_done(struct document *d);
