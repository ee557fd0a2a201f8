/*
 * sys/protect.h - what a daemon does to itself before it meets the code that it guards.
 */
#pragma once

#include <stdint.h>

struct rlimit;

/* Nobody of the same user may trace us or read our memory and environment.  Sanitized builds stay
 * traceable: their leak check traces itself. */
void protect_from_tracing(void);

/* We never need more memory of our own than that.  Not in sanitized builds, whose shadow is huge.
 */
void protect_limit_memory(uint64_t bytes);

/* Every descriptor from 3 on closes at exec; 0, 1 and 2 are open on something. */
void protect_descriptors(void);

/* Orphans of our descendants become our children.  0 or -errno. */
int protect_become_subreaper(void);

/* Allows us as many open files as we may have; *ret_before is what programs should get instead. */
void protect_raise_nofile(struct rlimit *ret_before);
