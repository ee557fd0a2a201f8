/*
 * sdk/transfer.h - bytes between descriptors and the server, with progress.
 */
#pragma once

#include <opensandbox/files.h>
#include <stdint.h>

#include "base/macro.h"

struct asking;

struct transfer {
	const osb_transfer *how; /* or NULL */
	int64_t done, total;	 /* total -1 = unknown */
	int fd;
	int problem; /* errno of a local write */
};

/* What is left of a regular file; -1 = it is none. */
int64_t transfer_length(int fd);

/* A transfer takes as long as it takes, unless the call says otherwise. */
osb_call transfer_call(const osb_call *call);

/* For struct ask: so many bytes have gone. */
int transfer_count(void *arg, int64_t n);

/* Asks, and writes the answer to t->fd; `status` is the only good one, 0 = any success. */
osb_must_check int transfer_receive(osb_client *c, struct asking *q, struct transfer *t, int status,
				    const osb_call *call, osb_error *e);

/* Asks with all that fd has; *ret (may be NULL) is the answer's text. */
osb_must_check int transfer_send(osb_client *c, struct asking *q, int fd, const osb_transfer *how,
				 const osb_call *call, char **ret, osb_error *e);
