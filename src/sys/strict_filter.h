/*
 * sys/strict_filter.h - a system call filter for programs that get no say over the kernel.
 *
 * Takes away what only those need who build or break out of sandboxes: namespaces, mounts, keys,
 * kernel programs and modules, clocks, typing into other people's terminals.  Everything else is
 * allowed: a filter around it all may be stricter.
 */
#pragma once

struct sock_fprog;

/* Built at the first call; for seccomp(2) with SECCOMP_SET_MODE_FILTER. */
const struct sock_fprog *strict_filter(void);
