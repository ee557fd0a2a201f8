/*
 * base/err.h - errors are values.
 *
 * An error lives on the caller's stack: nothing to allocate, nothing to free.
 * Every fallible function returns 0 (or a count >= 0), or -errno with *e
 * filled in.  Callees add facts, callers add context, programs print.
 */
#pragma once

#include <errno.h>

#include "base/macro.h"

struct err {
	int code;      /* -errno; 0 means "no error" */
	char msg[252]; /* one line, for people */
};

#define ERR_NONE ((struct err){0})

/*
 * err_set() records a failure and returns `code`, so that `return err_set(...)` reads well; `%m`
 * works.  err_ctx() prefixes an existing failure ("mount rootfs: open '/img': No such file") and
 * returns its code.  Both return a negative number whatever happens, and compilers can see it:
 * they know that outputs are set wherever a result is not negative.
 */
#define err_set(e, code, ...) err_negative_(err_set_((e), (code), __VA_ARGS__))
#define err_ctx(e, ...)	      err_negative_(err_ctx_((e), __VA_ARGS__))

static inline int err_negative_(int code)
{
	return code < 0 ? code : -EIO;
}

int err_set_(struct err *e, int code, const char *fmt, ...) osb_printf(3, 4);
int err_ctx_(struct err *e, const char *fmt, ...) osb_printf(2, 3);
