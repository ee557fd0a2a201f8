/*
 * sys/seqpacket.h - datagrams with file descriptors over a SOCK_SEQPACKET pair.
 */
#pragma once

#include <stddef.h>

#include "base/macro.h"
#include "base/view.h"

struct err;

#define SEQPACKET_MAX_FDS 8

osb_must_check int seqpacket_pair(int ret[2], struct err *e); /* close-on-exec, non-blocking */

/* Sends one datagram.  -EAGAIN when the peer's queue is full. */
osb_must_check int seqpacket_send(int fd, struct view data, const int *fds, size_t fds_n,
				  struct err *e);

/*
 * Receives one datagram: its length (0 = the peer has closed), -EAGAIN, -EMSGSIZE when it or its
 * fds did not fit (then nothing is kept), or -errno.  Unused places of ret_fds are -1; the caller
 * owns the rest.
 */
osb_must_check int seqpacket_receive(int fd, void *p, size_t size, int ret_fds[SEQPACKET_MAX_FDS],
				     struct err *e);

/* Closes those from `keep` on, which nobody asked for. */
void seqpacket_close(int fds[SEQPACKET_MAX_FDS], size_t keep);
