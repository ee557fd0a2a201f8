/*
 * warden/police.h - boxes whose network is policed: closed before anything runs in them, with the
 * sockets of the filter kept here for as long as they live.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"

struct box;
struct err;
struct options;
struct police;
struct record_ports;
struct warden;

/* Tries in a namespace of its own whether this host can do it; *ret comes back anyway. */
struct police *police_new(const struct warden *w, const struct options *o);
void police_free(struct police *p); /* accepts NULL */
bool police_possible(const struct police *p);
const char *police_missing(const struct police *p);	  /* "" where there is nothing to say */
int police_refuse(const struct police *p, struct err *e); /* -EOPNOTSUPP and why */

/* A box that is being made: the table and the sockets, before anything is in its namespace. */
osb_must_check int police_prepare(struct warden *w, struct box *b, int box_fd, int netns_fd,
				  struct err *e);

/* A box of an earlier warden is policed: its sockets are opened when somebody asks for them. */
void police_adopt(struct box *b, const struct record_ports *ports);

/* For a running box: b->netwatch is open after this. */
osb_must_check int police_open(struct warden *w, struct box *b, struct err *e);

/* Accepts boxes that are not policed. */
void police_forget(struct box *b);
