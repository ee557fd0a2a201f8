/*
 * execd/isolated_log.h - what a background run printed: the last 16 MiB, by byte offset.
 *
 * Kept in an unnamed file (in memory where there is no disk to write to), as a ring.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct app;
struct buf;
struct err;

#define ISOLATED_LOG_MAX ((uint64_t)16 << 20)

struct isolated_log {
	int fd;
	uint64_t total; /* bytes ever written: the offset of the next one */
};

osb_must_check int isolated_log_open(struct isolated_log *l, struct app *app, struct err *e);
void isolated_log_close(struct isolated_log *l);
void isolated_log_write(struct isolated_log *l, struct view bytes);

/* Appends everything from `cursor` on that is still there; what is gone is skipped. */
osb_must_check int isolated_log_read(const struct isolated_log *l, uint64_t cursor, struct buf *out,
				     struct err *e);
