/*
 * codec/http_answer.h - one HTTP/1.1 answer out of a stream of bytes: interim heads, head, body.
 *
 * The sender is not trusted: heads are parsed strictly and bounded, interim answers are counted,
 * and only the framing decides where the answer ends.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/view.h"
#include "codec/chunked.h"
#include "codec/http1.h"

enum http_answer_kind {
	HTTP_ANSWER_NONE,    /* needs more bytes */
	HTTP_ANSWER_INTERIM, /* a 1xx, not 101 */
	HTTP_ANSWER_HEAD,    /* the final head, or a 101 */
	HTTP_ANSWER_DATA,    /* the next piece of the body */
	HTTP_ANSWER_END,     /* complete */
	HTTP_ANSWER_BAD,     /* not an answer: `e` says why */
};

/* Views live until the next call for this answer. */
struct http_answer_event {
	enum http_answer_kind kind;
	struct http1_head head;
	struct view data;
	struct err e;
};

struct http_answer {
	struct buf in;
	int state;
	bool to_head;  /* the request was a HEAD: no body follows */
	bool upgrades; /* a 101 was asked for */
	size_t scanned;
	size_t told; /* bytes at the front of `in` that the last event used */
	unsigned interim_n;
	uint64_t left;
	struct chunked chunked;
};

void http_answer_init(struct http_answer *a);
void http_answer_done(struct http_answer *a);

/* Room for `n` bytes, or NULL when too many wait; then http_answer_add() says how many came. */
osb_must_check char *http_answer_room(struct http_answer *a, size_t n);
void http_answer_add(struct http_answer *a, size_t n);

/* Gives memory back that holds nothing, if it is more than `keep` bytes. */
void http_answer_rest(struct http_answer *a, size_t keep);

/* As http_answer_init() for the next answer, but for memory of at most `keep` bytes. */
void http_answer_again(struct http_answer *a, size_t keep);

void http_answer_next(struct http_answer *a, struct http_answer_event *ret);

/* Has everything come but the end of input (or of an empty body)?  Then nothing more is shown. */
bool http_answer_is_empty(const struct http_answer *a);

/* After the head: does its framing say where the body ends?  Else the end of input does. */
bool http_answer_is_framed(const struct http_answer *a);

/* No more bytes come: 0 when that completes the answer, else -ECONNRESET with a sentence. */
osb_must_check int http_answer_eof(const struct http_answer *a, struct err *e);

/* The bytes behind the head, after a HTTP_ANSWER_HEAD with 101. */
struct view http_answer_behind(const struct http_answer *a);
