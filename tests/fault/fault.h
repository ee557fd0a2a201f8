/*
 * fault.h - lets the Nth allocation or system call of an operation fail.
 *
 * The linker sends the wrapped calls through here (-Wl,--wrap), so the code under test is the
 * code that ships.  An operation is repeated with N = 1, 2, ... until nothing failed any more.
 */
#pragma once

#include <stdbool.h>

enum fault_kind {
	FAULT_MEMORY = 1, /* malloc and friends fail with ENOMEM */
	FAULT_CALL = 2,	  /* system calls fail, with the error each one is likely to give */
};

/*
 * Runs `operation(arg)` with one more fault each time.  It returns 0 when it succeeded in spite
 * of the fault and < 0 when it reported it.  After each run the open fds and children are the
 * same as before.  Returns how many runs met their fault; the run without any must succeed.
 */
typedef int fault_operation(void *arg);
int fault_each(enum fault_kind kind, fault_operation *operation, void *arg);
