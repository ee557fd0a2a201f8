/*
 * execd/code_kernelspec.h - Jupyter's kernels that an image brings: kernel.json files in the usual
 * places.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"
#include "base/strv.h"
#include "base/view.h"

struct err;

struct code_kernelspec {
	struct strv argv; /* {connection_file} and {resource_dir} still in it */
	struct strv env;
	bool interrupt_by_message;
};

/*
 * The directory of the kernel for `language` (as its kernel.json says it, or as the directory is
 * called; case does not matter) that comes first in a sandbox with this environment, for the
 * caller to free; NULL: there is none.
 */
char *code_kernelspec_find(struct view language, const struct strv *env);

/* The text of a kernel.json.  On success *ret is the caller's. */
osb_must_check int code_kernelspec_parse(struct view text, struct code_kernelspec *ret,
					 struct err *e);
osb_must_check int code_kernelspec_load(const char *dir, struct code_kernelspec *ret,
					struct err *e);
void code_kernelspec_done(struct code_kernelspec *s);
