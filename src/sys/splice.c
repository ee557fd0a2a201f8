/*
 * sys/splice.c - splice(2) and the pipes it needs.
 */
#include "sys/splice.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

#define PIPE_BYTES (256 * 1024)

int splice_pipe_open(int ret[2], struct err *e)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_set(e, -errno, "make a pipe: %m");
	/* A user's pipe memory is limited: the default size works too, only slower. */
	(void)fcntl(fds[1], F_SETPIPE_SZ, PIPE_BYTES);
	ret[0] = fds[0];
	ret[1] = fds[1];
	return 0;
}

void splice_pipe_close(int pipe[2])
{
	pipe[0] = fd_close(pipe[0]);
	pipe[1] = fd_close(pipe[1]);
}

ssize_t splice_move(int from, int to, size_t n)
{
	ssize_t moved;

	do
		moved = splice(from, NULL, to, NULL, n, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	while (moved < 0 && errno == EINTR);
	return moved < 0 ? -errno : moved;
}
