/*
 * sys/tool.h - runs another program to its end: text in, text out, all of it bounded.
 */
#pragma once

#include <stddef.h>

#include "base/macro.h"
#include "base/view.h"

struct err;

/*
 * `argv[0]` is looked up in the usual places.  What it writes to stdout and stderr ends up in
 * `ret_text`, NUL-terminated and cut at `size`.  Returns its exit code (128 + signal when one ended
 * it), or -errno when it could not be started or took too long.
 */
osb_must_check int tool_run(const char *const *argv, struct view input, char *ret_text, size_t size,
			    struct err *e);
