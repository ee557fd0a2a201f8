/*
 * mcp/standard.c - see standard.h.
 */
#include "mcp/standard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "codec/jsonrpc.h"
#include "mcp/mcp.h"
#include "mcp/pool.h"
#include "mcp/session.h"

#define READ_BYTES 65536

#define PIPE_PIECE 4096 /* what a pipe that is ready takes without waiting */

struct output {
	pthread_mutex_t lock; /* one message at a time */
	int fd;
	int wake[2];   /* a pipe: something is written to it when nothing can be sent any more */
	int signal_fd; /* readable when the program shall end */
	bool broken;
};

/* Waits for a slow reader, but not for ever: false when the program ends. */
static bool wait_writable(const struct output *o)
{
	struct pollfd fds[] = {{.fd = o->fd, .events = POLLOUT},
			       {.fd = o->wake[0], .events = POLLIN},
			       {.fd = o->signal_fd, .events = POLLIN}};

	while (poll(fds, ARRAY_LEN(fds), -1) < 0)
		if (errno != EINTR)
			return false;
	return fds[0].revents && !fds[1].revents && !fds[2].revents;
}

static bool write_all(const struct output *o, struct view text)
{
	while (text.len) {
		ssize_t n;

		if (!wait_writable(o))
			return false;
		n = write(o->fd, text.p, MIN(text.len, (size_t)PIPE_PIECE));
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return false;
		text = view_skip(text, n < 0 ? 0 : (size_t)n);
	}
	return true;
}

static void give_up(struct output *o)
{
	o->broken = true;
	/* A pipe that is full says it already. */
	(void)!write(o->wake[1], "!", 1);
}

static void send_line(void *arg, struct view message, bool last)
{
	struct output *o = arg;

	(void)last;
	if (!message.len)
		return;
	(void)pthread_mutex_lock(&o->lock);
	if (!o->broken && !(write_all(o, message) && write_all(o, VIEW("\n"))))
		give_up(o);
	(void)pthread_mutex_unlock(&o->lock);
}

static void take_lines(struct session *s, struct sink sink, struct jsonrpc_frames *f,
		       struct buf *in)
{
	struct view rest = buf_view(in), line;
	enum jsonrpc_frame got;

	while ((got = jsonrpc_frame_next(f, &rest, MCP_MESSAGE_MAX, &line)) != JSONRPC_FRAME_MORE)
		if (got == JSONRPC_FRAME)
			(void)session_take(s, line, sink);
		else
			session_complain(sink, JSONRPC_INVALID_REQUEST,
					 "the message is longer than 16 MiB");
	buf_consume(in, in->len - rest.len);
	buf_shrink(in, READ_BYTES);
}

/* A piece of the input; false at its end. */
static bool read_some(struct buf *in)
{
	char *room = buf_reserve(in, READ_BYTES);
	ssize_t n;

	if (!room)
		return false;
	n = read(STDIN_FILENO, room, READ_BYTES);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	buf_commit(in, n > 0 ? (size_t)n : 0);
	return n > 0;
}

static void converse(struct session *s, struct output *o)
{
	osb_cleanup(buf_done) struct buf in = BUF_INIT(MCP_MESSAGE_MAX + 2u * READ_BYTES);
	struct sink sink = {send_line, o};
	struct jsonrpc_frames f = {0};
	struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
			       {.fd = o->wake[0], .events = POLLIN},
			       {.fd = o->signal_fd, .events = POLLIN}};

	for (;;) {
		if (poll(fds, ARRAY_LEN(fds), -1) < 0 && errno != EINTR)
			return;
		if (fds[1].revents || fds[2].revents)
			return;
		if (!fds[0].revents)
			continue;
		if (!read_some(&in))
			return;
		take_lines(s, sink, &f, &in);
	}
}

/* Messages go to the real standard output; whatever else is printed goes to standard error. */
static int keep_output(void)
{
	int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);

	if (fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return fd_close(fd);
	return fd;
}

static int watch_signals(void)
{
	sigset_t ends;

	(void)sigemptyset(&ends);
	(void)sigaddset(&ends, SIGTERM);
	(void)sigaddset(&ends, SIGINT);
	/* Before there are threads: they inherit it. */
	(void)pthread_sigmask(SIG_BLOCK, &ends, NULL);
	return signalfd(-1, &ends, SFD_CLOEXEC);
}

int standard_serve(struct mcp *mcp)
{
	struct output o = {.lock = PTHREAD_MUTEX_INITIALIZER,
			   .fd = keep_output(),
			   .wake = {-1, -1},
			   .signal_fd = watch_signals()};
	int code = EXIT_FAILURE;

	if (o.fd < 0 || o.signal_fd < 0 || pipe2(o.wake, O_CLOEXEC | O_NONBLOCK) < 0) {
		log_line(LOG_ERROR, "cannot start", LOG_S("err", strerror(errno)));
	} else {
		struct session *s = session_new(mcp);

		converse(s, &o);
		/* Calls that are cancelled end now, and have nothing to say any more. */
		session_close(s);
		give_up(&o);
		pool_free(mcp->pool);
		mcp->pool = NULL;
		code = EXIT_SUCCESS;
	}
	fd_close(o.wake[0]);
	fd_close(o.wake[1]);
	fd_close(o.signal_fd);
	fd_close(o.fd);
	return code;
}
