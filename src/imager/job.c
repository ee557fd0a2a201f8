/*
 * imager/job.c - lines over a unix socket, and a signal when its other end is gone.
 */
#include "imager/job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "codec/json.h"
#include "codec/json_writer.h"

#define REQUEST_MAX (16 << 20)
#define READ_SIZE   65536
#define LINE_MAX_   4096 /* of a failure: its message is bounded */

static bool peer_gone(int fd)
{
	struct pollfd p = {.fd = fd};

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR));
}

/* Sent whenever something happens on the socket.  Everything below is safe in a handler. */
static void on_io(int signum)
{
	int saved = errno;

	(void)signum;
	if (peer_gone(JOB_FD))
		_exit(1);
	errno = saved;
}

int job_open(struct job *j, int fd, struct err *e)
{
	struct sigaction io = {.sa_handler = on_io, .sa_flags = SA_RESTART};
	int type, flags = fcntl(fd, F_GETFL);
	socklen_t size = sizeof(type);

	if (flags < 0 || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0 ||
	    type != SOCK_STREAM)
		return err_set(e, -EINVAL, "file descriptor %d must be a stream socket", fd);
	if (sigaction(SIGIO, &io, NULL) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(fd, F_SETOWN, getpid()) < 0 ||
	    fcntl(fd, F_SETFL, (flags & ~O_NONBLOCK) | O_ASYNC) < 0)
		return err_set(e, -errno, "watch file descriptor %d: %m", fd);
	*j = (struct job){.fd = fd};
	return 0;
}

static int read_line(struct job *j, struct buf *text, struct err *e)
{
	for (;;) {
		char *p = buf_reserve(text, READ_SIZE);
		ssize_t n;

		if (!p)
			return err_set(e, -E2BIG, "the request is larger than %d bytes",
				       REQUEST_MAX);
		n = read(j->fd, p, READ_SIZE);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_set(e, -EPIPE, "no request came");
		buf_commit(text, (size_t)n);
		if (view_has(view_mem(p, (size_t)n), '\n'))
			return 0;
	}
}

int job_read(struct job *j, struct err *e)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(REQUEST_MAX);
	struct view line;
	int r = read_line(j, &text, e);

	if (r < 0)
		return r;
	line = view_first(buf_view(&text), view_find(buf_view(&text), '\n'));
	r = json_parse(line, 0, &j->request, e);
	if (r == 0 && json_kind(j->request) != JSON_OBJECT)
		r = err_set(e, -EINVAL, "the request must be an object");
	return r < 0 ? err_ctx(e, "request") : 0;
}

void job_close(struct job *j)
{
	json_free(j->request);
	j->request = NULL;
	j->fd = fd_close(j->fd);
}

static void send_all(struct job *j, struct view v)
{
	while (v.len > 0) {
		ssize_t n = send(j->fd, v.p, v.len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		v = view_skip(v, (size_t)n);
	}
}

void job_send(struct job *j, struct buf *line)
{
	send_all(j, buf_view(line));
	send_all(j, VIEW("\n"));
}

void job_send_if_room(struct job *j, struct buf *line)
{
	int unread = 0, room = 0;
	socklen_t size = sizeof(room);

	/* The kernel counts its own overhead too: a quarter of the room is surely there. */
	if (ioctl(j->fd, TIOCOUTQ, &unread) < 0 ||
	    getsockopt(j->fd, SOL_SOCKET, SO_SNDBUF, &room, &size) < 0)
		return;
	if (unread < room / 4 && line->len < (size_t)room / 4)
		job_send(j, line);
}

int job_wait(struct job *j, struct err *e)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(READ_SIZE * 2);

	send_all(j, VIEW("{\"ready\":{}}\n"));
	return read_line(j, &text, e);
}

void job_done(struct job *j)
{
	send_all(j, VIEW("{\"done\":{}}\n"));
}

static const char *code_of(int code)
{
	switch (-code) {
	case EACCES:
		return "UNAUTHORIZED";
	case ENOENT:
		return "NOT_FOUND";
	case EHOSTUNREACH:
		return "UNREACHABLE";
	case EBADMSG:
		return "BAD_IMAGE";
	case EOPNOTSUPP:
		return "UNSUPPORTED";
	case EFBIG:
		return "TOO_LARGE";
	case ENOSPC:
	case EDQUOT:
		return "NO_SPACE";
	default:
		return "INTERNAL";
	}
}

void job_failed(struct job *j, const struct err *e)
{
	osb_cleanup(buf_done) struct buf line = BUF_INIT(LINE_MAX_);
	struct json_writer w;

	json_writer_init(&w, &line);
	json_write_object(&w);
	json_write_key(&w, "failed");
	json_write_object(&w);
	json_put_cstr(&w, "code", code_of(e->code));
	json_put_cstr(&w, "message", e->msg);
	json_write_object_end(&w);
	json_write_object_end(&w);
	if (json_writer_end(&w) == 0)
		job_send(j, &line);
}
