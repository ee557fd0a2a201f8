/*
 * execd/code_kernel_link.h - a started Jupyter kernel and our three connections to it.
 *
 * Everything blocks: this runs in a process of its own, one per context (code_kernel.h).
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/macro.h"
#include "base/rand.h"
#include "base/view.h"
#include "codec/zmtp.h"

struct code_kernelspec;
struct err;
struct jupyter_msg;

enum kernel_channel { KERNEL_SHELL, KERNEL_IOPUB, KERNEL_CONTROL, KERNEL_CHANNELS_ };

struct kernel_link {
	pid_t pid;
	int pidfd;
	char *dir; /* of the connection file */
	char key[RAND_HEX_LEN + 1];
	char session[RAND_HEX_LEN + 1];
	unsigned short ports[5]; /* shell, iopub, control, stdin, heartbeat */
	int fds[KERNEL_CHANNELS_];
	struct zmtp_reader readers[KERNEL_CHANNELS_];
};

/* Starts the kernel and connects.  On success *ret is the caller's. */
osb_must_check int kernel_link_open(const struct code_kernelspec *spec, const char *resource_dir,
				    struct kernel_link *ret, struct err *e);
void kernel_link_close(struct kernel_link *l); /* kills the kernel and what it has started */

/* `content` is a JSON object; the message's id is written to ret_id. */
osb_must_check int kernel_link_send(struct kernel_link *l, enum kernel_channel to, const char *type,
				    struct view content, char ret_id[RAND_HEX_LEN + 1],
				    struct err *e);

/* Reads what is there; then kernel_link_next() until it gives 0. */
osb_must_check int kernel_link_fill(struct kernel_link *l, enum kernel_channel from, struct err *e);
/* 1 and a message for the caller to free, 0: none is complete.  Forged messages are left out. */
osb_must_check int kernel_link_next(struct kernel_link *l, enum kernel_channel from,
				    struct jupyter_msg *ret, struct err *e);
