/*
 * execd/isolated_init.h - the first process of an isolated session, and how execd talks to it.
 *
 * It builds the session's root, then starts shells when asked, reaps, and tells when a shell has
 * ended.  When its socket closes (execd let go of the session, or is gone) it ends, and the kernel
 * ends everything else in its pid namespace.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/macro.h"
#include "base/strv.h"
#include "execd/isolated_root.h"

enum isolated_op {
	/* to the session */
	ISOLATED_GO = 1, /* ids are mapped: begin */
	ISOLATED_START,	 /* a shell: two fds, `id`, `flag` = its environment begins empty */
	ISOLATED_SIGNAL, /* shell `id`'s group gets `value` */
	/* from the session */
	ISOLATED_READY,	 /* with the overlay's upper directory, if there is one */
	ISOLATED_FAILED, /* `e` says why */
	ISOLATED_EXITED, /* shell `id` ended with status `value` */
};

struct isolated_message {
	uint32_t op;
	uint32_t id;
	int32_t value;
	uint32_t flag;
	struct err e; /* of FAILED alone */
};

struct isolated_init {
	struct isolated_root root;
	int socket;	   /* SOCK_SEQPACKET */
	const char *shell; /* path */
	bool bash;
	struct strv env;
	bool set_ids;
	uid_t uid;
	gid_t gid;
	const struct sock_fprog *filter; /* of the shells' system calls, or NULL */
	bool new_net;
	bool probe; /* build, tell, end */
};

/* Never returns. */
osb_noreturn void isolated_init_run(struct isolated_init *i);
