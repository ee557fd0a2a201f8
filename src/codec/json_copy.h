/*
 * codec/json_copy.h - a JSON value written again as it was read.
 */
#pragma once

struct json;
struct json_writer;

/* As a value (after a key, or in an array).  NULL is written as null. */
void json_write_json(struct json_writer *w, const struct json *v);
