/*
 * net/sendq.h - bytes on their way into a socket: sent at once when possible, kept otherwise.
 *
 * Knows nothing of the loop: the owner watches the socket while anything is left.
 */
#pragma once

#include <stddef.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "base/macro.h"

struct sendq {
	struct buf buf;
};

void sendq_init(struct sendq *q, size_t max);
void sendq_done(struct sendq *q);

static inline size_t sendq_len(const struct sendq *q)
{
	return q->buf.len;
}

/*
 * Sends what the kernel takes now (nothing when something is queued already, or with `fd` -1)
 * and keeps the rest.  0, -E2BIG when too much would be kept, or the socket's -errno.  At most 8
 * pieces.
 */
osb_must_check int sendq_write(struct sendq *q, int fd, const struct iovec *iov, size_t n);

/* Sends what is kept: bytes sent, -EAGAIN, or the socket's -errno. */
osb_must_check ssize_t sendq_flush(struct sendq *q, int fd);
