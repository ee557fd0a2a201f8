/*
 * sys/allow_list.h - a filter that lets the listed system calls pass and no others (EPERM), for the
 * rest of the process's life.
 */
#pragma once

#include <seccomp.h>
#include <stddef.h>

#include "base/macro.h"

struct err;

/* Adds what a name alone cannot say; 0 or -errno. */
typedef int allow_list_fn(scmp_filter_ctx ctx);

/* On top of what every program needs: memory, time, signals, its own threads and descriptors. Names
 * that the library does not know yet are passed over. */
osb_must_check int allow_list_apply(const char *const *names, size_t names_n, allow_list_fn *more,
				    struct err *e);

/* One call, if a condition on an argument holds. */
osb_must_check int allow_list_when(scmp_filter_ctx ctx, int call, struct scmp_arg_cmp condition);

/* Threads of our own and nothing else that clone(2) can make; limits may be read, not set. */
osb_must_check int allow_list_threads(scmp_filter_ctx ctx);
