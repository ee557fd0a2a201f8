/*
 * image/host.c - the host image on disk: one current tree, and older ones as long as sandboxes may
 * still use them.
 */
#include "image/host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/hex.h"
#include "base/rand.h"
#include "base/view.h"
#include "codec/resolv.h"
#include "codec/sha256.h"
#include "image/host_tree.h"

#define CURRENT "rootfs"
#define NEW	"rootfs.new"
#define OLD	"rootfs.old-"
#define STAMP	"stamp"

#define STAMP_LEN (2 * SHA256_BYTES)

static void read_resolv(const char *path, struct resolv_conf *ret)
{
	osb_cleanup(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char text[16384];
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text));

	resolv_parse(view_mem(text, n > 0 ? (size_t)n : 0), ret);
}

/* A stub on loopback is out of reach of a sandbox; systemd's tells whom it asks in turn. */
void host_image_dns(struct resolv_conf *ret)
{
	struct resolv_conf behind;

	read_resolv("/etc/resolv.conf", ret);
	if (ret->n > 0 || ret->loopback_n == 0)
		return;
	read_resolv("/run/systemd/resolve/resolv.conf", &behind);
	if (behind.n > 0)
		*ret = behind;
}

/* Our own tree: as deep as host_tree.c makes it. */
static int remove_tree(int dir_fd, const char *name, struct err *e)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int r = 0;

	if (!d) {
		fd_close(fd);
		return errno == ENOENT ? 0 : err_set(e, -errno, "open %s: %m", name);
	}
	while (r == 0 && (entry = readdir(d))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (unlinkat(dirfd(d), entry->d_name, 0) < 0)
			r = errno == EISDIR ? remove_tree(dirfd(d), entry->d_name, e)
					    : err_set(e, -errno, "remove %s: %m", entry->d_name);
	}
	closedir(d);
	if (r == 0 && unlinkat(dir_fd, name, AT_REMOVEDIR) < 0)
		r = err_set(e, -errno, "remove %s: %m", name);
	return r;
}

static bool is_current(int dir_fd, const char *stamp)
{
	osb_cleanup(fd_closep) int fd = openat(dir_fd, STAMP, O_RDONLY | O_CLOEXEC);
	char text[STAMP_LEN];

	return fd >= 0 && read(fd, text, sizeof(text)) == (ssize_t)sizeof(text) &&
	       memcmp(text, stamp, sizeof(text)) == 0 &&
	       faccessat(dir_fd, CURRENT "/etc/passwd", F_OK, 0) == 0;
}

static int write_stamp(int dir_fd, const char *stamp, struct err *e)
{
	osb_cleanup(fd_closep) int fd =
		openat(dir_fd, STAMP, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, stamp, STAMP_LEN) != STAMP_LEN)
		return err_set(e, -errno, "write the image's stamp: %m");
	return 0;
}

static int build(int dir_fd, const struct resolv_conf *dns, struct err *e)
{
	osb_cleanup(fd_closep) int root = -1;
	int r = remove_tree(dir_fd, NEW, e);

	if (r < 0)
		return r;
	if (mkdirat(dir_fd, NEW, 0755) < 0)
		return err_set(e, -errno, "mkdir %s: %m", NEW);
	root = openat(dir_fd, NEW, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return err_set(e, -errno, "open %s: %m", NEW);
	return host_tree_fill(root, dns, e);
}

/* Sandboxes that run on the old tree go on with it, whatever it is called. */
static int exchange(int dir_fd, struct err *e)
{
	char old[sizeof(OLD) + RAND_HEX_LEN], hex[RAND_HEX_LEN + 1];

	rand_hex(hex);
	snprintf(old, sizeof(old), OLD "%s", hex);
	if (renameat(dir_fd, CURRENT, dir_fd, old) < 0 && errno != ENOENT)
		return err_set(e, -errno, "rename %s: %m", CURRENT);
	if (renameat(dir_fd, NEW, dir_fd, CURRENT) < 0)
		return err_set(e, -errno, "rename %s: %m", NEW);
	return 0;
}

int host_image_refresh(const char *dir, const struct resolv_conf *dns, struct err *e)
{
	osb_cleanup(fd_closep) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unsigned char sum[SHA256_BYTES];
	char stamp[STAMP_LEN + 1];
	struct sha256 s;
	int r;

	if (fd < 0)
		return err_set(e, -errno, "open %s: %m", dir);
	sha256_init(&s);
	host_tree_stamp(dns, &s);
	sha256_done(&s, sum);
	hex_format(sum, sizeof(sum), stamp);
	if (is_current(fd, stamp))
		return 0;
	r = build(fd, dns, e);
	if (r == 0)
		r = exchange(fd, e);
	if (r == 0)
		r = write_stamp(fd, stamp, e);
	return r < 0 ? err_ctx(e, "host image") : 0;
}

void host_image_prune(const char *dir)
{
	DIR *d = opendir(dir);
	struct err ignored = ERR_NONE; /* the next start tries again */
	struct dirent *entry;

	while (d && (entry = readdir(d)))
		if (view_starts(view_of(entry->d_name), VIEW(OLD)))
			(void)!remove_tree(dirfd(d), entry->d_name, &ignored);
	if (d)
		closedir(d);
}
