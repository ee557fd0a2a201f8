/*
 * cli/snake.h - the server's camelCase members as the names that osb's output has.
 */
#pragma once

#include "base/macro.h"
#include "base/view.h"

struct cli;
struct json;
struct json_writer;

/* `sourceType` becomes `source_type`; keys of metadata and headers stay as they are. */
void snake_write(struct json_writer *w, const struct json *v);

/* The server's JSON (freed) in the format of the call; returns the exit code. */
int snake_show(struct cli *c, char *json, const char *columns);
