/*
 * execd/code_shell.h - runs as shell text, for drivers that are shells.
 *
 * The driver's file is a template: what comes before the line "#--- run" is sent once, what comes
 * behind it for each run, with @CODE@ (quoted), @ID@ and @COUNT@ replaced.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct buf;
struct code_shell;

struct code_shell *code_shell_new(const char *file);
void code_shell_free(struct code_shell *s); /* accepts NULL */
osb_must_check int code_shell_begin(const struct code_shell *s, struct buf *out);
osb_must_check int code_shell_run(const struct code_shell *s, struct buf *out, const char *id,
				  uint64_t count, struct view code);
