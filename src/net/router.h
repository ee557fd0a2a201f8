/*
 * net/router.h - which handler answers a method and a path.
 *
 * A table of rows; "{name}" matches one path segment, a last "{name...}" the rest of the path
 * (maybe empty).  Literal segments win over parameters.  An unknown path is 404, a known path with
 * another method 405 with Allow.  HEAD uses the GET row.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macro.h"
#include "base/view.h"

struct http_exchange;

struct route {
	const char *method; /* "GET"; "*" = any; NULL ends the table */
	const char *path;
	void (*handler)(struct http_exchange *x, void *app);
	unsigned flags; /* the program's own */
};

#define ROUTE_MAX_PARAMS 4

struct route_match {
	const struct route *route; /* NULL when nothing matched */
	bool path_known;	   /* the path exists with another method */
	const char *params[ROUTE_MAX_PARAMS];
	struct view values[ROUTE_MAX_PARAMS]; /* raw (still percent-encoded) */
	size_t params_n;
	char allow[64]; /* "GET, DELETE" when path_known */
};

/* `tables` ends with NULL.  Pure: no exchange needed. */
void route_find(const struct route *const *tables, struct view method, struct view path,
		struct route_match *ret);

/* Matches, keeps the match as the exchange's user pointer and calls the handler, or answers
 * 404/405. */
void route_dispatch(struct http_exchange *x, const struct route *const *tables, void *app);

/* The value of "{name}" of the matched route, percent-decoded; the empty view if it cannot be
 * decoded. */
struct view route_param(struct http_exchange *x, const char *name);
