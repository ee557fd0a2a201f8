/*
 * net/tls_files.c - reads, checks and watches a certificate and its key.
 *
 * Directories are watched, not files: certificates are replaced by renaming, and often behind
 * symbolic links.  Whoever writes writes two files: they are looked at a moment later.
 */
#include "net/tls_files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "net/tls_int.h"
#include "sys/memfd.h"

#define FRESH_NS  (50 * 1000000ll)
#define MOMENT_US (300 * 1000ull)
#define STIRS                                                                                      \
	(IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_ATTRIB | IN_MOVE_SELF |         \
	 IN_DELETE_SELF | IN_ONLYDIR)

/* What tells one version of a file from the next. */
struct version {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec changed;
};

struct tls_files {
	char *paths[2];		    /* certificate, key */
	struct version versions[2]; /* that were looked at last */
	int64_t looked_ns;	    /* when; Unix time */
	int text_fd;
	int watch_fd;
	uint64_t due_us;
	int64_t until;
};

/* ---- reading ---- */

static int read_file(const char *path, struct buf *out, struct version *ret, struct err *e)
{
	struct stat st;
	int r = tls_read_pem(path, out, &st, e);

	if (r == 0)
		*ret = (struct version){st.st_dev, st.st_ino, st.st_size, st.st_ctim};
	return r;
}

/* The text that is passed on: the certificate, a NUL, the key. */
static int read_both(struct tls_files *f, struct buf *text, struct err *e)
{
	int r;

	f->looked_ns = (int64_t)clock_wall_ns();
	r = read_file(f->paths[0], text, &f->versions[0], e);
	if (r == 0 && buf_append_char(text, '\0') < 0)
		r = err_set(e, -E2BIG, "%s is too large", f->paths[0]);
	return r ? r : read_file(f->paths[1], text, &f->versions[1], e);
}

static int use_text(struct view text, struct tls_server **s, struct err *e)
{
	size_t nul = view_find(text, '\0');
	struct view cert = view_first(text, nul), key = view_skip(text, nul + 1);

	return *s ? tls_server_use_pem(*s, cert, key, e) : tls_server_new_pem(cert, key, s, e);
}

static int load(struct tls_files *f, struct err *e)
{
	osb_cleanup(tls_wipe) struct buf text = BUF_INIT(2 * TLS_PEM_MAX + 1);
	struct tls_server *s = NULL;
	int fd = -1, r = read_both(f, &text, e);

	if (r == 0)
		r = use_text(buf_view(&text), &s, e);
	if (r == 0)
		r = memfd_of("tls", buf_view(&text), &fd, e);
	if (r == 0) {
		f->until = tls_server_until(s);
		fd_close(f->text_fd);
		f->text_fd = fd;
	}
	tls_server_free(s);
	return r;
}

int tls_files_use(int fd, struct tls_server **s, struct err *e)
{
	osb_cleanup(tls_wipe) struct buf text = BUF_INIT(2 * TLS_PEM_MAX + 1);
	int r = memfd_read(fd, &text, e);

	return r ? r : use_text(buf_view(&text), s, e);
}

/* ---- watching ---- */

static void watch_parent(const struct tls_files *f, char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		slash[slash == path ? 1 : 0] = '\0';
	/* A directory that is watched already is not watched twice. */
	(void)inotify_add_watch(f->watch_fd, slash ? path : ".", STIRS);
}

/* Where the files are named, and where they are. */
static void watch(const struct tls_files *f)
{
	for (size_t i = 0; i < ARRAY_LEN(f->paths); i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s", f->paths[i]);
		watch_parent(f, path);
		if (realpath(f->paths[i], path))
			watch_parent(f, path);
	}
}

int tls_files_watch(const struct tls_files *f)
{
	return f->watch_fd;
}

void tls_files_stirred(struct tls_files *f)
{
	char events[4096];

	while (read(f->watch_fd, events, sizeof(events)) > 0)
		;
	if (!f->due_us)
		f->due_us = clock_mono_us() + MOMENT_US;
}

uint64_t tls_files_due_us(const struct tls_files *f)
{
	return f->due_us;
}

/* The kernel tells times of files apart only so well: what was changed just before we looked may
 * have been changed again. */
static bool was_fresh(const struct tls_files *f, const struct version *v)
{
	return v->changed.tv_sec * INT64_C(1000000000) + v->changed.tv_nsec + FRESH_NS >
	       f->looked_ns;
}

static bool same(const struct tls_files *f)
{
	for (size_t i = 0; i < ARRAY_LEN(f->paths); i++) {
		const struct version *v = &f->versions[i];
		struct stat st;

		if (was_fresh(f, v) || stat(f->paths[i], &st) < 0 || st.st_dev != v->dev ||
		    st.st_ino != v->ino || st.st_size != v->size ||
		    st.st_ctim.tv_sec != v->changed.tv_sec ||
		    st.st_ctim.tv_nsec != v->changed.tv_nsec)
			return false;
	}
	return true;
}

int tls_files_look(struct tls_files *f, bool always, struct err *e)
{
	int r;

	f->due_us = 0;
	watch(f);
	if (!always && same(f))
		return 0;
	r = load(f, e);
	return r < 0 ? r : 1;
}

int64_t tls_files_until(const struct tls_files *f)
{
	return f->until;
}

/* ---- birth and death ---- */

int tls_files_new(const char *cert, const char *key, struct tls_files **ret, struct err *e)
{
	struct tls_files *f = mem_new(struct tls_files);
	int r;

	f->paths[0] = mem_strdup(cert);
	f->paths[1] = mem_strdup(key);
	f->text_fd = -1;
	f->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (f->watch_fd < 0) {
		r = err_set(e, -errno, "watch files: %m");
	} else {
		watch(f);
		r = load(f, e);
	}
	if (r < 0) {
		tls_files_free(f);
		return r;
	}
	*ret = f;
	return 0;
}

int tls_files_text(const struct tls_files *f)
{
	return f->text_fd;
}

void tls_files_free(struct tls_files *f)
{
	if (!f)
		return;
	fd_close(f->text_fd);
	fd_close(f->watch_fd);
	free(f->paths[0]);
	free(f->paths[1]);
	free(f);
}
