/*
 * codec/json_writer.h - JSON text written straight into a buffer.
 *
 * Nesting, commas and escaping are the writer's job.  Strings may be any bytes: what is not
 * UTF-8 becomes U+FFFD, so the output is always valid.  The first failure (the buffer's
 * ceiling) sticks; json_writer_end() reports it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct buf;

struct json_writer {
	struct buf *out;
	int failed;	/* 0 or -E2BIG */
	unsigned depth; /* open objects and arrays, at most 64 */
	uint64_t first; /* bit d: nothing was written yet at depth d + 1 */
	bool after_key;
};

void json_writer_init(struct json_writer *w, struct buf *out);
osb_must_check int json_writer_end(struct json_writer *w); /* everything closed: 0, or -E2BIG */

void json_write_object(struct json_writer *w); /* { */
void json_write_object_end(struct json_writer *w);
void json_write_array(struct json_writer *w); /* [ */
void json_write_array_end(struct json_writer *w);
void json_write_key(struct json_writer *w, const char *key);
void json_write_key_view(struct json_writer *w, struct view key);

void json_write_string(struct json_writer *w, struct view text);
void json_write_cstr(struct json_writer *w, const char *text);
void json_write_int(struct json_writer *w, int64_t n);
void json_write_uint(struct json_writer *w, uint64_t n);
void json_write_double(struct json_writer *w, double n); /* finite; at most 6 decimals */
void json_write_bool(struct json_writer *w, bool b);
void json_write_null(struct json_writer *w);

/*
 * A value that is JSON text already, written on one line: its line ends, which can only stand
 * between values, become spaces.  That it is JSON is the caller's promise.
 */
void json_write_text(struct json_writer *w, struct view text);

/* key and value at once */
void json_put_string(struct json_writer *w, const char *key, struct view text);
void json_put_cstr(struct json_writer *w, const char *key, const char *text);
void json_put_int(struct json_writer *w, const char *key, int64_t n);
void json_put_bool(struct json_writer *w, const char *key, bool b);

/* Appends `text` as the inside of a JSON string (no quotes): the one escaping routine. */
osb_must_check int json_escape(struct buf *out, struct view text);
