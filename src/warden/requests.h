/*
 * warden/requests.h - what the server may ask: one function per kind of request.
 */
#pragma once

struct warden;
struct warden_msg;

/* Answers `m`; `fd` came with it (borrowed, or -1). */
void requests_handle(struct warden *w, const struct warden_msg *m, int fd);
