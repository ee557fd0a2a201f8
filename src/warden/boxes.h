/*
 * warden/boxes.h - the life of one box after it was made: watched, ended, taken apart.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"

struct box;
struct err;
struct kind;
struct warden;

/* Empty, in no list; `kind` (borrowed) is NULL for one that is adopted. */
struct box *box_new(struct warden *w, struct kind *kind);

/* Watches for its end and for memory kills. */
osb_must_check int box_watch(struct box *b, struct err *e);

void box_unwatch(struct box *b);

struct box *box_find(struct warden *w, const char *id);

/* The seed becomes the sandbox `id`: its directory is renamed and it is known by that name. */
osb_must_check int box_name(struct box *b, const char *id, struct err *e);

/* Kills everything inside and returns: nothing can hold that up any more.  What the box used is
 * given back when its first process has ended, some milliseconds later. */
void box_kill(struct box *b);

/* Kills everything inside, waits for the first process's end, gives back what it used, frees it. */
void box_destroy(struct box *b);

/* Frees the record only; the sandbox stays. */
void box_forget(struct box *b);
