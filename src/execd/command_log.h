/*
 * execd/command_log.h - where background commands write: files, or memory where no file can be.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"

struct command_logs;
struct err;
struct options;

#define COMMAND_LOG_MEMORY_MAX (16 * 1024 * 1024) /* of a log that has no file */

/* `dir`: of the options, or NULL: one of our own that is made when it is needed. */
struct command_logs *command_logs_new(const char *dir);
void command_logs_free(struct command_logs *l); /* removes a directory of our own */

/*
 * A new, empty log that a program may append to (close-on-exec).  *ret_in_memory: it has no file,
 * lives as long as its descriptor, and takes no more than COMMAND_LOG_MEMORY_MAX.
 */
osb_must_check int command_logs_create(struct command_logs *l, const char *id, int *ret_fd,
				       bool *ret_in_memory, struct err *e);
osb_must_check int command_logs_open(struct command_logs *l, const char *id, int *ret_fd,
				     struct err *e);
void command_logs_remove(struct command_logs *l, const char *id);

/* How much was written. */
osb_must_check int command_log_size(int fd, bool in_memory, uint64_t *ret, struct err *e);
