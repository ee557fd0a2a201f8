/*
 * execd/code_kernel.h - languages without a driver of ours, through Jupyter kernels of the image.
 *
 * The driver of such a language is execd itself, started again as an ordinary process of the
 * sandbox: it speaks the channel of code-drivers.md on one side and the kernel's protocol on the
 * other.  Nothing that a kernel sends is read by the daemon.
 */
#pragma once

#include <stdbool.h>

#include "base/view.h"

struct code_language;
struct strv;

#define CODE_KERNEL_ARG "--code-kernel" /* of the process; the language follows */

/* A row for `language` if a kernel in a sandbox with this environment serves it, else NULL. */
const struct code_language *code_kernel_language(struct view language, const struct strv *env);

/* The process: returns its exit code. */
int code_kernel_main(const char *language);
