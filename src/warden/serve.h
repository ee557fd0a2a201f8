/*
 * warden/serve.h - the server's connection: comes from the supervisor, brings requests.
 */
#pragma once

#include "base/macro.h"

struct err;
struct warden;

osb_must_check int serve_start(struct warden *w, struct err *e); /* watches the supervisor */
void serve_disconnect(struct warden *w);
void serve_stop(struct warden *w);
