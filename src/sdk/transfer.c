/*
 * sdk/transfer.c - see transfer.h.
 */
#include "sdk/transfer.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "sdk/asking.h"
#include "sdk/fail.h"

int transfer_count(void *arg, int64_t n)
{
	struct transfer *t = arg;

	t->done += n;
	return t->how && t->how->progress ? t->how->progress(t->how->arg, t->done, t->total) : 0;
}

int64_t transfer_length(int fd)
{
	struct stat st;
	off_t at;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	at = lseek(fd, 0, SEEK_CUR);
	return at < 0 ? -1 : at > st.st_size ? 0 : (int64_t)(st.st_size - at);
}

osb_call transfer_call(const osb_call *call)
{
	osb_call own = call ? *call : (osb_call){0};

	if (!own.timeout_ms)
		own.timeout_ms = OSB_FOREVER;
	return own;
}

static int save(void *arg, struct view bytes)
{
	struct transfer *t = arg;
	size_t done = 0;

	while (done < bytes.len) {
		ssize_t n = write(t->fd, bytes.p + done, bytes.len - done);

		if (n < 0 && errno != EINTR) {
			t->problem = errno;
			return -1;
		}
		done += n > 0 ? (size_t)n : 0;
	}
	return transfer_count(t, (int64_t)bytes.len);
}

int transfer_receive(osb_client *c, struct asking *q, struct transfer *t, int status,
		     const osb_call *call, osb_error *e)
{
	osb_call own = transfer_call(call);
	struct answer answer;
	int r;

	q->ask.target = buf_view(&q->target);
	q->ask.twice = false; /* what was written stays written */
	answer_init(&answer);
	r = ask_stream(c, &q->ask, &own, save, t, &answer, e);
	if (t->problem)
		r = fail(e, OSB_ERR_IO, "write the local file: %s", strerror(t->problem));
	else if (r == 0 && status && answer.status != status)
		r = fail(e, OSB_ERR_PROTOCOL, "the server answered %d instead of %d", answer.status,
			 status);
	answer_done(&answer);
	return r;
}

int transfer_send(osb_client *c, struct asking *q, int fd, const osb_transfer *how,
		  const osb_call *call, char **ret, osb_error *e)
{
	struct ask_part body = {.fd = fd, .length = transfer_length(fd)};
	struct transfer t = {.how = how, .total = body.length};
	osb_call own = transfer_call(call);

	q->ask.content_type = "application/x-tar";
	q->ask.parts = &body;
	q->ask.parts_n = 1;
	q->ask.sent = transfer_count;
	q->ask.sent_arg = &t;
	return asking_text(c, q, &own, ret, e);
}
