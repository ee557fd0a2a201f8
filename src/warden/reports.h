/*
 * warden/reports.h - what the warden tells the server without being asked, and answers.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct box;
struct err;
struct warden;
struct warden_msg;

void report_hello(struct warden *w);
void report_exit(const struct box *b);
void report_oom(const struct box *b);

void answer(struct warden *w, const struct warden_msg *m, int fd); /* fd: borrowed, or -1 */
void answer_with(struct warden *w, const struct warden_msg *m, const int *fds, size_t fds_n);
void answer_ok(struct warden *w, const struct warden_msg *request);
void answer_failed(struct warden *w, const struct warden_msg *request, const struct err *e);
