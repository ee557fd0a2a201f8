/*
 * cli/show.h - results on standard output: tables for people, JSON and YAML for programs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct cli;
struct json_writer;

/*
 * `json` as the call's format wants it; returns the exit code.  For tables: `columns` are members
 * of the items of a list ("id name status.state"), NULL = all members of one object, a line each.
 */
int show_json(struct cli *c, struct view json, const char *columns);

/* {"status":"ok","message":...}, or the message alone. */
int show_done(struct cli *c, const char *fmt, ...) osb_printf(2, 3);

/* As it is. */
int show_raw(struct cli *c, struct view text);

/* A table of its own. */
struct json;
int show_yaml(const struct json *v);
int show_table(struct cli *c, const struct json *v, const char *columns);

/* Members as Python's SDK names them: a time with microseconds, null where there is none. */
void put_time(struct json_writer *w, const char *key, const char *rfc3339);
/* As Python prints a datetime: the published osb does so here. */
void put_python_time(struct json_writer *w, const char *key, const char *rfc3339);
void put_text(struct json_writer *w, const char *key, const char *text); /* NULL is null */

/* "pagination": {...}. */
void put_pagination(struct json_writer *w, int page, int size, int items, int pages, bool more);
