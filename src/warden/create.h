/*
 * warden/create.h - creates: from a seed at once, else when one has been made for it.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"

struct err;
struct warden;
struct warden_msg;

/* Answers now or later; `start_file` is borrowed. */
void create_begin(struct warden *w, const struct warden_msg *m, int start_file);

/* Gives ready seeds to those that wait. */
void create_continue(struct warden *w);

/* Of the create that is number `n` (from 0) among those that wait; false: there is none. */
bool create_waiting_kind(const struct warden *w, unsigned n, const char **ret_image, bool *ret_nat);

/* A seed of this kind could not be made: the first create that waits for one is told so.  False:
 * none does. */
bool create_refuse(struct warden *w, const char *image, bool nat, const struct err *e);

/* Whoever asked has gone. */
void create_forget(struct warden *w);
