/*
 * base/strv.h - a growing, NULL-terminated vector of owned strings: argv and environments.
 */
#pragma once

#include <stddef.h>

#include "base/macro.h"
#include "base/view.h"

struct strv {
	char **v; /* NULL-terminated once anything was added; NULL before */
	size_t len;
	size_t cap;
};

#define STRV_INIT ((struct strv){0})

void strv_done(struct strv *s);
void strv_add(struct strv *s, const char *text);      /* copies */
void strv_add_view(struct strv *s, struct view text); /* copies */
void strv_take(struct strv *s, char *text);	      /* owns */
void strv_copy(struct strv *s, char *const *v);	      /* appends every string of v; NULL is empty */
char *const *strv_args(const struct strv *s);	      /* never NULL: an empty vector is { NULL } */

/* Environments: "NAME=value" strings, one per name. */
void strv_env_set(struct strv *s, struct view name, struct view value);
void strv_env_unset(struct strv *s, struct view name);
const char *strv_env_get(const struct strv *s, struct view name); /* the value, or NULL */
