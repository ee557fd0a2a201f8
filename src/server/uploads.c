/*
 * server/uploads.c - bodies to files.
 */
#include "server/uploads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "codec/http1.h"
#include "net/http_server.h"
#include "server/failure.h"
#include "server/state_dir.h"

#define DIRECTORY "/" STATE_DIR_UPLOADS

struct upload {
	int fd;
	char name[UPLOAD_NAME_MAX];
	uint64_t bytes, max_bytes;
	upload_fn *fn;
	void *arg;
};

static unsigned under_way;

static void path_of(const char *name, char ret[static sizeof(DIRECTORY) + UPLOAD_NAME_MAX])
{
	snprintf(ret, sizeof(DIRECTORY) + UPLOAD_NAME_MAX, "%s/%s", DIRECTORY, name);
}

void upload_name(char ret[static UPLOAD_NAME_MAX])
{
	rand_uuid(ret);
}

int upload_open(const char *name)
{
	char path[sizeof(DIRECTORY) + UPLOAD_NAME_MAX];
	int fd;

	path_of(name, path);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

void upload_remove(const char *name)
{
	char path[sizeof(DIRECTORY) + UPLOAD_NAME_MAX];

	path_of(name, path);
	if (unlink(path) < 0 && errno != ENOENT)
		log_line(LOG_WARN, "cannot remove an upload, the next start will",
			 LOG_S("upload", name), LOG_S("err", strerror(errno)));
}

void uploads_sweep(void)
{
	DIR *d = opendir(DIRECTORY);
	struct dirent *entry;

	while (d && (entry = readdir(d)))
		if (entry->d_name[0] != '.')
			(void)unlinkat(dirfd(d), entry->d_name, 0); /* tried again next time */
	if (d)
		closedir(d);
}

static void end(struct upload *u, struct http_exchange *x, const struct failure *f)
{
	u->fd = fd_close(u->fd);
	under_way--;
	if (x)
		http_on_gone(x, NULL, NULL);
	if (!x || f)
		upload_remove(u->name);
	u->fn(u->arg, x, x && !f ? u->name : NULL, f);
	free(u);
}

static void gone(struct http_exchange *x, void *arg)
{
	(void)x;
	end(arg, NULL, NULL);
}

static int too_large(uint64_t max_bytes, struct failure *f)
{
	return failure_set(f, 413, "GENERAL::TOO_LARGE", "the body must have at most %llu bytes",
			   (unsigned long long)max_bytes);
}

/* What unpacks it needs room, too, but knows better how much. */
static uint64_t free_bytes(void)
{
	struct statvfs fs;

	return statvfs(DIRECTORY, &fs) == 0 ? (uint64_t)fs.f_bavail * fs.f_frsize : UINT64_MAX;
}

static int write_all(struct upload *u, struct view piece, struct failure *f)
{
	if (piece.len > u->max_bytes - u->bytes)
		return too_large(u->max_bytes, f);
	u->bytes += piece.len;
	while (piece.len > 0) {
		ssize_t n = write(u->fd, piece.p, piece.len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return failure_set(f, errno == ENOSPC || errno == EDQUOT ? 507 : 500,
					   "GENERAL::UPLOAD_FAILED", "the body cannot be kept: %s",
					   strerror(errno));
		piece = view_skip(piece, (size_t)n);
	}
	return 0;
}

static void receive(struct http_exchange *x, struct view piece, void *arg)
{
	struct upload *u = arg;
	struct failure f = FAILURE_NONE;

	if (piece.len == 0)
		end(u, x, NULL);
	else if (write_all(u, piece, &f) < 0)
		end(u, x, &f);
}

void upload_receive(struct http_exchange *x, uint64_t max_bytes, upload_fn *fn, void *arg)
{
	char path[sizeof(DIRECTORY) + UPLOAD_NAME_MAX];
	struct failure f = FAILURE_NONE;
	struct upload *u;

	if (http_head(x)->has_length && http_head(x)->length > max_bytes)
		(void)too_large(max_bytes, &f);
	else if (http_head(x)->has_length && http_head(x)->length > free_bytes())
		failure_set(&f, 507, "GENERAL::NO_SPACE",
			    "there is no room for a body of %llu bytes",
			    (unsigned long long)http_head(x)->length);
	if (!f.status && under_way >= UPLOADS_MAX) {
		failure_set(&f, 503, "GENERAL::TOO_MANY_UPLOADS",
			    "%d bodies are being received, more must wait", UPLOADS_MAX);
		f.retry_after_s = 1;
	}
	if (f.status) {
		fn(arg, x, NULL, &f);
		return;
	}
	u = mem_new(struct upload);
	upload_name(u->name);
	path_of(u->name, path);
	u->max_bytes = max_bytes;
	u->fn = fn;
	u->arg = arg;
	under_way++;
	u->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (u->fd < 0) {
		failure_set(&f, errno == ENOSPC ? 507 : 500, "GENERAL::UPLOAD_FAILED",
			    "cannot make a file for the body: %s", strerror(errno));
		end(u, x, &f);
		return;
	}
	http_on_gone(x, gone, u);
	http_body_stream(x, receive, u);
}
