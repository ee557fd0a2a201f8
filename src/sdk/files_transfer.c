/*
 * sdk/files_transfer.c - files in and out, as streams.
 */
#include <inttypes.h>
#include <opensandbox/files.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/rand.h"
#include "codec/json_writer.h"
#include "sdk/fail.h"
#include "sdk/files_int.h"
#include "sdk/sandbox_int.h"
#include "sdk/transfer.h"

#define HEAD_MAX (1u << 20)
#define READ_MAX (1u << 30)

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
	struct asking q;
	int r;

	fail_none(e);
	rand_hex(boundary);
	if (!path || write_form(path, mode, boundary, &form, e) < 0)
		return fail(e, OSB_ERR_INVALID, "an upload needs a name of at most 1 MiB");
	snprintf(type, sizeof(type), "multipart/form-data; boundary=%s", boundary);
	snprintf(tail, sizeof(tail), "\r\n--%s--\r\n", boundary);
	parts[0].bytes = buf_view(&form);
	parts[2].bytes = view_of(tail);
	r = asking_exec(s, OSB_PORT_EXEC, "POST", "/files/upload", call, &q, e);
	if (r == 0) {
		q.ask.content_type = type;
		q.ask.parts = parts;
		q.ask.parts_n = ARRAY_LEN(parts);
		q.ask.sent = transfer_count;
		q.ask.sent_arg = t;
		r = asking_do(s->client, &q, call, e);
	}
	asking_done(&q);
	return r;
}

int osb_file_write(osb_sandbox *s, const char *path, const void *bytes, size_t n,
		   const osb_file_mode *mode, const osb_call *call, osb_error *e)
{
	struct ask_part file = {.bytes = view_mem(bytes, n), .fd = -1};
	struct transfer t = {.total = (int64_t)n};

	return upload(s, &file, path, mode, &t, call, e);
}

int osb_file_upload(osb_sandbox *s, int fd, const char *path, const osb_file_mode *mode,
		    const osb_transfer *transfer, const osb_call *call, osb_error *e)
{
	struct ask_part file = {.fd = fd, .length = transfer_length(fd)};
	struct transfer t = {.how = transfer, .total = file.length};
	osb_call own = transfer_call(call);

	return upload(s, &file, path, mode, &t, &own, e);
}

/* ---- downloads ---- */

int osb_file_read(osb_sandbox *s, const char *path, const osb_call *call, char **ret_bytes,
		  size_t *ret_n, osb_error *e)
{
	struct answer answer;
	struct asking q;
	int r = asking_exec(s, OSB_PORT_EXEC, "GET", "/files/download", call, &q, e);

	answer_init(&answer);
	if (r == 0) {
		asking_param(&q, "path", path);
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
	asking_done(&q);
	return r;
}

static int download(osb_sandbox *s, const char *path, const char *range, struct transfer *t,
		    const osb_call *call, osb_error *e)
{
	struct asking q;
	int r = asking_exec(s, OSB_PORT_EXEC, "GET", "/files/download", call, &q, e);

	if (r == 0) {
		asking_param(&q, "path", path);
		asking_header(&q, "Range", range);
		r = transfer_receive(s->client, &q, t, range ? 206 : 0, call, e);
	}
	asking_done(&q);
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
