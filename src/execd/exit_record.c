/*
 * execd/exit_record.c - a file appears whole or not at all; a descriptor is written in one go.
 */
#include "execd/exit_record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/json_writer.h"
#include "codec/rfc3339.h"
#include "execd/options.h"

#define STATUS_MAX 4096

static int write_file(const char *path, struct view text, struct err *e)
{
	osb_cleanup(mem_freep) char *temporary = mem_printf("%s.new", path);
	osb_cleanup(fd_closep) int fd = -1;

	fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return err_set(e, -errno, "open '%s': %m", temporary);
	if (write(fd, text.p, text.len) != (ssize_t)text.len || fsync(fd) < 0)
		return err_set(e, -EIO, "write '%s': %m", temporary);
	if (rename(temporary, path) < 0)
		return err_set(e, -errno, "rename '%s': %m", temporary);
	return 0;
}

/* The longer text first, then the cut: a reader in between sees our record, then remains. */
static int write_fd(int fd, struct view text, struct err *e)
{
	if (pwrite(fd, text.p, text.len, 0) != (ssize_t)text.len)
		return err_set(e, -EIO, "write to descriptor %d: %m", fd);
	if (ftruncate(fd, (off_t)text.len) < 0)
		return err_set(e, -errno, "cut descriptor %d: %m", fd);
	return 0;
}

static void put_time(struct json_writer *w, const char *key, uint64_t ns)
{
	char text[RFC3339_MAX];

	rfc3339_format((int64_t)ns, text);
	json_put_cstr(w, key, text);
}

void exit_record_write(const struct options *o, const struct exit_record *record)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(STATUS_MAX);
	struct err e = ERR_NONE;
	struct json_writer w;

	json_writer_init(&w, &text);
	json_write_object(&w);
	json_put_int(&w, "exit_code", record->exit_code);
	if (record->signal)
		json_put_int(&w, "signal", record->signal);
	if (record->error)
		json_put_cstr(&w, "error", record->error);
	if (record->reason)
		json_put_cstr(&w, "reason", record->reason);
	if (record->started_ns)
		put_time(&w, "started_at", record->started_ns);
	put_time(&w, "finished_at", clock_wall_ns());
	json_write_object_end(&w);
	if (json_writer_end(&w) < 0 || buf_append_char(&text, '\n') < 0)
		return;
	if (o->status_file && write_file(o->status_file, buf_view(&text), &e) < 0)
		log_line(LOG_ERROR, "exit status not recorded", LOG_S("err", e.msg));
	if (o->status_fd >= 0 && write_fd(o->status_fd, buf_view(&text), &e) < 0)
		log_line(LOG_ERROR, "exit status not recorded", LOG_S("err", e.msg));
}
