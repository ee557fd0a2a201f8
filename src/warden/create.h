/*
 * warden/create.h - creates: from a seed at once, else when one has been made for it.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"

struct err;
struct kind;
struct warden;
struct warden_msg;

/* Answers now or later; the files are borrowed.  Without a mounts file (-1) it is the host image.
 */
void create_begin(struct warden *w, const struct warden_msg *m, int start_file, int mounts_file);

/* Gives ready seeds to those that wait. */
void create_continue(struct warden *w);

/* Of the first create that waits for a seed which is not being made yet; NULL: there is none. */
struct kind *create_next_kind(const struct warden *w);

/* A seed of this kind could not be made: the first create that waits for one is told so.  False:
 * none does. */
bool create_refuse(struct warden *w, struct kind *k, const struct err *e);

/* Whoever asked has gone. */
void create_forget(struct warden *w);
