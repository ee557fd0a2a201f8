/*
 * warden/requests.h - what the server may ask: one function per kind of request.
 */
#pragma once

struct warden;
struct warden_msg;

/* Answers `m`; `fds` (two, borrowed, or -1) came with it. */
void requests_handle(struct warden *w, const struct warden_msg *m, const int *fds);
