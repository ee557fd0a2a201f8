/*
 * base/err.h - errors are values.
 *
 * An error lives on the caller's stack: nothing to allocate, nothing to free.
 * Every fallible function returns 0 (or a count >= 0), or -errno with *e
 * filled in.  Callees add facts, callers add context, programs print.
 */
#pragma once

#include "base/macro.h"

struct err {
	int code;      /* -errno; 0 means "no error" */
	char msg[252]; /* one line, for people */
};

#define ERR_NONE ((struct err){0})

/* Records a failure and returns `code`, so that `return err_set(...)` reads well.  `%m` works. */
int err_set(struct err *e, int code, const char *fmt, ...) osb_printf(3, 4);

/* Prefixes an existing failure ("mount rootfs: open '/img': No such file") and returns its code. */
int err_ctx(struct err *e, const char *fmt, ...) osb_printf(2, 3);
