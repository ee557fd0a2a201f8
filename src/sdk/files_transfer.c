/*
 * sdk/files_transfer.c - files in and out, as streams.
 */
#include <errno.h>
#include <inttypes.h>
#include <opensandbox/files.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/num.h"
#include "base/rand.h"
#include "codec/json_writer.h"
#include "sdk/fail.h"
#include "sdk/files_int.h"
#include "sdk/sandbox_int.h"

#define HEAD_MAX (1u << 20)
#define READ_MAX (1u << 30)

/* Progress of one transfer. */
struct transfer {
	const osb_transfer *how; /* or NULL */
	int64_t done, total;
	int fd;
	int problem; /* errno of a local write */
};

static int count(void *arg, int64_t n)
{
	struct transfer *t = arg;

	t->done += n;
	return t->how && t->how->progress ? t->how->progress(t->how->arg, t->done, t->total) : 0;
}

/* ---- uploads: two parts of a form, the second is the file ---- */

static int write_form(const char *path, const osb_file_mode *mode, const char *boundary,
		      struct buf *out, osb_error *e)
{
	struct json_writer w;
	int r = buf_printf(out,
			   "--%s\r\nContent-Disposition: form-data; name=\"metadata\"; "
			   "filename=\"metadata\"\r\nContent-Type: application/json\r\n\r\n",
			   boundary);

	json_writer_init(&w, out);
	json_write_object(&w);
	json_put_cstr(&w, "path", path);
	file_mode_write(&w, mode);
	json_write_object_end(&w);
	r = r ? r : json_writer_end(&w);
	r = r ? r
	      : buf_printf(out,
			   "\r\n--%s\r\nContent-Disposition: form-data; name=\"file\"; "
			   "filename=\"file\"\r\nContent-Type: application/octet-stream\r\n\r\n",
			   boundary);
	return r < 0 ? fail(e, OSB_ERR_INVALID, "the file's name is too long") : 0;
}

static int upload(osb_sandbox *s, const struct ask_part *file, const char *path,
		  const osb_file_mode *mode, struct transfer *t, const osb_call *call, osb_error *e)
{
	osb_cleanup(buf_done) struct buf form = BUF_INIT(HEAD_MAX);
	char boundary[RAND_HEX_LEN + 1], type[80], tail[RAND_HEX_LEN + 16];
	struct ask_part parts[3] = {{.fd = -1}, *file, {.fd = -1}};
	struct exec_ask q;
	int r;

	fail_none(e);
	rand_hex(boundary);
	if (!path || write_form(path, mode, boundary, &form, e) < 0)
		return fail(e, OSB_ERR_INVALID, "an upload needs a name of at most 1 MiB");
	snprintf(type, sizeof(type), "multipart/form-data; boundary=%s", boundary);
	snprintf(tail, sizeof(tail), "\r\n--%s--\r\n", boundary);
	parts[0].bytes = buf_view(&form);
	parts[2].bytes = view_of(tail);
	r = exec_ask_begin(s, OSB_PORT_EXEC, "POST", "/files/upload", call, &q, e);
	if (r == 0) {
		q.ask.content_type = type;
		q.ask.parts = parts;
		q.ask.parts_n = ARRAY_LEN(parts);
		q.ask.sent = count;
		q.ask.sent_arg = t;
		r = exec_ask_do(s, &q, call, e);
	}
	exec_ask_done(&q);
	return r;
}

int osb_file_write(osb_sandbox *s, const char *path, const void *bytes, size_t n,
		   const osb_file_mode *mode, const osb_call *call, osb_error *e)
{
	struct ask_part file = {.bytes = view_mem(bytes, n), .fd = -1};
	struct transfer t = {.total = (int64_t)n};

	return upload(s, &file, path, mode, &t, call, e);
}

/* What is left of a regular file; -1 = it is none. */
static int64_t length_of(int fd)
{
	struct stat st;
	off_t at;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	at = lseek(fd, 0, SEEK_CUR);
	return at < 0 ? -1 : at > st.st_size ? 0 : (int64_t)(st.st_size - at);
}

/* A transfer takes as long as it takes. */
static osb_call patient(const osb_call *call)
{
	osb_call own = call ? *call : (osb_call){0};

	if (!own.timeout_ms)
		own.timeout_ms = OSB_FOREVER;
	return own;
}

int osb_file_upload(osb_sandbox *s, int fd, const char *path, const osb_file_mode *mode,
		    const osb_transfer *transfer, const osb_call *call, osb_error *e)
{
	struct ask_part file = {.fd = fd, .length = length_of(fd)};
	struct transfer t = {.how = transfer, .total = file.length};
	osb_call own = patient(call);

	return upload(s, &file, path, mode, &t, &own, e);
}

/* ---- downloads ---- */

int osb_file_read(osb_sandbox *s, const char *path, const osb_call *call, char **ret_bytes,
		  size_t *ret_n, osb_error *e)
{
	struct answer answer;
	struct exec_ask q;
	int r = exec_ask_begin(s, OSB_PORT_EXEC, "GET", "/files/download", call, &q, e);

	answer_init(&answer);
	if (r == 0) {
		exec_ask_query(&q, "path", path);
		q.ask.target = buf_view(&q.target);
		q.ask.body_max = READ_MAX;
		r = ask_whole(s->client, &q.ask, call, &answer, e);
	}
	if (r == 0) {
		if (ret_n)
			*ret_n = answer.body.len;
		*ret_bytes = buf_take_str(&answer.body);
	}
	answer_done(&answer);
	exec_ask_done(&q);
	return r;
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
	return count(t, (int64_t)bytes.len);
}

static int download(osb_sandbox *s, const char *path, const char *range, struct transfer *t,
		    const osb_call *call, osb_error *e)
{
	osb_call own = patient(call);
	struct answer answer;
	struct exec_ask q;
	int r = exec_ask_begin(s, OSB_PORT_EXEC, "GET", "/files/download", call, &q, e);

	answer_init(&answer);
	if (r == 0) {
		exec_ask_query(&q, "path", path);
		exec_ask_header(&q, "Range", range);
		q.ask.target = buf_view(&q.target);
		q.ask.twice = false; /* what was written stays written */
		r = ask_stream(s->client, &q.ask, &own, save, t, &answer, e);
	}
	if (t->problem)
		r = fail(e, OSB_ERR_IO, "write the local file: %s", strerror(t->problem));
	else if (r == 0 && range && answer.status != 206)
		r = fail(e, OSB_ERR_PROTOCOL, "the server does not send parts of files");
	answer_done(&answer);
	exec_ask_done(&q);
	return r;
}

/* How much will come? */
static int64_t size_of(osb_sandbox *s, const char *path, const osb_call *call)
{
	const char *paths[] = {path, NULL};
	osb_file_list *l = NULL;
	int64_t n = -1;

	if (osb_file_stat(s, paths, call, &l, NULL) == 0 && l->n == 1)
		n = l->items[0].size;
	osb_file_list_free(l);
	return n;
}

int osb_file_download(osb_sandbox *s, const char *path, int fd, const osb_transfer *transfer,
		      const osb_call *call, osb_error *e)
{
	struct transfer t = {.how = transfer, .total = -1, .fd = fd};

	if (transfer && transfer->progress)
		t.total = size_of(s, path, call);
	return download(s, path, NULL, &t, call, e);
}

int osb_file_download_range(osb_sandbox *s, const char *path, int64_t first, int64_t last, int fd,
			    const osb_transfer *transfer, const osb_call *call, osb_error *e)
{
	struct transfer t = {.how = transfer, .total = -1, .fd = fd};
	char range[64];

	if (first < 0 || (last >= 0 && last < first))
		return fail(e, OSB_ERR_INVALID, "a range goes from its first byte to a later one");
	if (last >= 0) {
		t.total = last - first + 1;
		snprintf(range, sizeof(range), "bytes=%" PRId64 "-%" PRId64, first, last);
	} else {
		snprintf(range, sizeof(range), "bytes=%" PRId64 "-", first);
	}
	return download(s, path, range, &t, call, e);
}
