/*
 * egress/api_int.h - what the files of the API share.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "base/macro.h"
#include "base/view.h"
#include "net/router.h"

struct box;
struct buf;
struct egress;
struct http_exchange;
struct http_server;
struct loop_task;
struct map;

struct api {
	struct egress *egress;
	struct box *only; /* or NULL: there are many */
	struct http_server *server;
	struct list changes;	/* those that are read, wait or are made; oldest first */
	struct map *busy;	/* ids of boxes whose policy is being changed */
	struct loop_task *next; /* begins the changes that can begin */
	size_t body_bytes;	/* of all changes */
};

/* What a handler is given: it is about this box. */
struct api_target {
	struct api *api;
	struct box *box;
};

extern const struct route api_policy_routes[];
extern const struct route api_event_routes[];

/* The box of an id, or NULL: it has gone. */
struct box *api_box(struct api *a, const char *id);

/* One line and its end: how this API says what is wrong. */
void api_reply_text(struct http_exchange *x, int status, const char *fmt, ...) osb_printf(3, 4);
void api_reply_json(struct http_exchange *x, struct buf *body);

/* Ends the changes under way; their clients hear nothing. */
void api_policy_end(struct api *a);
void api_policy_begin_next(void *arg); /* the task */
