/*
 * egress/api.h - the HTTP API of every policed sandbox: /policy, /credential-vault, /healthz and
 * the decisions.  Beside the worker, the paths begin with /boxes/{id}.
 */
#pragma once

#include "base/macro.h"

struct api;
struct box;
struct egress;
struct err;

/* Answers on `listen_fd` (taken), as g->api.  With `only`, for that box and without a prefix. */
osb_must_check int api_new(struct egress *g, int listen_fd, struct box *only, struct err *e);
void api_free(struct api *a); /* accepts NULL; cuts what is under way; before the boxes end */
