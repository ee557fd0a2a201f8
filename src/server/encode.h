/*
 * server/encode.h - sandboxes as the protocol writes them.
 */
#pragma once

#include <stdint.h>

struct json_writer;
struct sandbox;

/* The object of GET, list and PATCH. */
void encode_sandbox(struct json_writer *w, const struct sandbox *b);

/* The answer of a create: without the image. */
void encode_created(struct json_writer *w, const struct sandbox *b);

/* "key": "2025-11-16T14:30:45.123456Z" */
void encode_time(struct json_writer *w, const char *key, int64_t unix_us);
