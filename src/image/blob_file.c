/*
 * image/blob_file.c - write, hash, lock and rename.
 */
#include "image/blob_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/hex.h"
#include "base/mem.h"

#define READ_SIZE 65536
#define PREFIX	  7 /* "sha256:" */

void blob_file_init(struct blob_file *b, int dir_fd, const char *digest, uint64_t size)
{
	*b = (struct blob_file){.dir_fd = dir_fd, .fd = -1, .size = size};
	snprintf(b->name, sizeof(b->name), "%s", digest + PREFIX);
	sha256_init(&b->sum);
}

void blob_file_close(struct blob_file *b)
{
	b->fd = fd_close(b->fd);
}

static void part_name(const struct blob_file *b, char ret[sizeof(b->name) + 8])
{
	snprintf(ret, sizeof(b->name) + 8, "%s.part", b->name);
}

static int hash_file(struct blob_file *b, int fd, struct err *e)
{
	osb_cleanup(mem_freep) char *chunk = mem_alloc(READ_SIZE);
	ssize_t n;

	sha256_init(&b->sum);
	b->have = 0;
	while ((n = pread(fd, chunk, READ_SIZE, (off_t)b->have)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(e, -errno, "read blob %.12s: %m", b->name);
		sha256_add(&b->sum, view_mem(chunk, (size_t)n));
		b->have += (uint64_t)n;
	}
	return 0;
}

static bool digest_right(struct blob_file *b)
{
	unsigned char raw[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];

	sha256_done(&b->sum, raw);
	hex_format(raw, sizeof(raw), hex);
	return strcmp(hex, b->name) == 0;
}

/* A blob may have lost its content in a crash of the machine: it is looked at again. */
static int look_at_complete(struct blob_file *b, struct err *e)
{
	osb_cleanup(fd_closep) int fd =
		openat(b->dir_fd, b->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_set(e, -errno, "open blob %.12s: %m", b->name);
	r = hash_file(b, fd, e);
	if (r < 0)
		return r;
	if (b->have == b->size && digest_right(b))
		return 1;
	b->have = 0;
	if (unlinkat(b->dir_fd, b->name, 0) < 0 && errno != ENOENT)
		return err_set(e, -errno, "remove the spoilt blob %.12s: %m", b->name);
	return 0;
}

/* 1 = it is ours and has its name, 0 = it was renamed or removed while we waited for it. */
static int still_named(const struct blob_file *b, const char *part)
{
	struct stat ours, named;

	return fstat(b->fd, &ours) == 0 &&
	       fstatat(b->dir_fd, part, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       ours.st_ino == named.st_ino && ours.st_dev == named.st_dev;
}

/* 1 = ours, 0 = try again. */
static int open_part(struct blob_file *b, struct err *e)
{
	char part[sizeof(b->name) + 8];
	struct stat st;

	part_name(b, part);
	b->fd = openat(b->dir_fd, part, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (b->fd < 0)
		return err_set(e, -errno, "open blob %.12s: %m", b->name);
	if (flock(b->fd, LOCK_EX | LOCK_NB) < 0) {
		int code = errno == EWOULDBLOCK ? -EBUSY : -errno;

		b->have = fstat(b->fd, &st) == 0 ? (uint64_t)st.st_size : 0;
		blob_file_close(b);
		return err_set(e, code, "another job fetches blob %.12s", b->name);
	}
	if (!still_named(b, part)) {
		blob_file_close(b);
		return 0;
	}
	return 1;
}

int blob_file_open(struct blob_file *b, struct err *e)
{
	int r;

	do {
		r = look_at_complete(b, e);
		if (r != 0)
			return r;
		r = open_part(b, e);
	} while (r == 0);
	if (r > 0)
		r = hash_file(b, b->fd, e);
	if (r == 0 && b->have > b->size)
		r = blob_file_restart(b, e);
	return r;
}

int blob_file_restart(struct blob_file *b, struct err *e)
{
	if (ftruncate(b->fd, 0) < 0)
		return err_set(e, -errno, "empty blob %.12s: %m", b->name);
	sha256_init(&b->sum);
	b->have = 0;
	return 0;
}

int blob_file_add(struct blob_file *b, struct view bytes, struct err *e)
{
	if (bytes.len > b->size - b->have)
		return err_set(e, -EBADMSG,
			       "blob %.12s is longer than the manifest says (%ju bytes)", b->name,
			       (uintmax_t)b->size);
	while (bytes.len > 0) {
		ssize_t n = pwrite(b->fd, bytes.p, bytes.len, (off_t)b->have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_set(e, n < 0 ? -errno : -EIO, "write blob %.12s: %m", b->name);
		sha256_add(&b->sum, view_first(bytes, (size_t)n));
		b->have += (uint64_t)n;
		bytes = view_skip(bytes, (size_t)n);
	}
	return 0;
}

int blob_file_finish(struct blob_file *b, struct err *e)
{
	char part[sizeof(b->name) + 8];
	int r = 0;

	part_name(b, part);
	if (!digest_right(b)) {
		(void)unlinkat(b->dir_fd, part, 0);
		r = err_set(e, -EBADMSG, "blob %.12s has another content than its digest says",
			    b->name);
	} else if (renameat(b->dir_fd, part, b->dir_fd, b->name) < 0) {
		r = err_set(e, -errno, "rename blob %.12s: %m", b->name);
	}
	blob_file_close(b);
	return r;
}
