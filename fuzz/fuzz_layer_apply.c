/*
 * Layers: whatever an archive says, it happens below one directory, and nothing in there is a
 * device but whiteouts.
 */
#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "image/layer_apply.h"
#include "image/tree_delete.h"
#include "image/tree_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char place[64];
static int place_fd = -1;

static void forget_place(void)
{
	struct err e = ERR_NONE;

	if (tree_delete(AT_FDCWD, place, &e) < 0)
		fprintf(stderr, "%s\n", e.msg);
}

/* PLACE/root is where the layer goes, PLACE/outside is what it must not touch. */
static void make_place(void)
{
	const char *tmp = getenv("TMPDIR");
	int fd;

	snprintf(place, sizeof(place), "%.40s/osb-layer.XXXXXX", tmp ? tmp : "/tmp");
	assert(mkdtemp(place));
	atexit(forget_place);
	place_fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert(place_fd >= 0 && mkdirat(place_fd, "root", 0755) == 0);
	fd = openat(place_fd, "outside", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert(fd >= 0 && write(fd, "untouched", 9) == 9);
	fd_close(fd);
	(void)umask(0);
}

static void check_outside(void)
{
	struct stat st;
	size_t n = 0;
	DIR *d = opendir(place);

	assert(d);
	while (readdir(d))
		n++;
	closedir(d);
	assert(n == 4); /* ".", "..", "root", "outside" */
	assert(fstatat(place_fd, "outside", &st, AT_SYMLINK_NOFOLLOW) == 0);
	assert(S_ISREG(st.st_mode) && st.st_size == 9 && st.st_nlink == 1);
	assert((st.st_mode & 07777) == 0600);
	assert(fstatat(place_fd, "root", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode));
}

static void check_inside(int root_fd)
{
	osb_cleanup(tree_walk_closep) struct tree_walk *w = NULL;
	struct tree_entry t;
	struct err e = ERR_NONE;
	struct stat st;
	int r, fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);

	assert(fd >= 0 && lseek(fd, 0, SEEK_SET) == 0);
	assert(tree_walk_open(fd, &w, &e) == 0);
	while ((r = tree_walk_next(w, &t, &e)) > 0) {
		assert(fstatat(t.dir_fd, t.name, &st, AT_SYMLINK_NOFOLLOW) == 0);
		assert(!S_ISBLK(st.st_mode) && !S_ISSOCK(st.st_mode));
		assert(!S_ISCHR(st.st_mode) || st.st_rdev == makedev(0, 0));
		if (S_ISDIR(st.st_mode) && !t.leaving) {
			assert(fchmodat(t.dir_fd, t.name, 0700, 0) == 0);
			assert(tree_walk_enter(w, &e) == 0);
		}
	}
	assert(r == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct layer_limits limits = {.max_bytes = 1 << 20, .max_files = 1000};
	struct layer_totals totals = {0};
	osb_cleanup(layer_apply_freep) struct layer_apply *a = NULL;
	osb_cleanup(fd_closep) int root_fd = -1;
	struct err e = ERR_NONE;
	int r;

	if (place_fd < 0)
		make_place();
	root_fd = openat(place_fd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert(layer_apply_new(root_fd, LAYER_ROOTLESS, &limits, &a, &e) == 0);
	r = layer_apply_feed(a, view_mem(data, size), &e);
	if (r == 0)
		r = layer_apply_finish(a, &totals, &e);
	assert(r == 0 || (e.code == r && e.msg[0]));
	assert(totals.bytes <= limits.max_bytes && totals.files <= limits.max_files);
	check_outside();
	(void)fchmod(root_fd, 0700);
	check_inside(root_fd);
	assert(tree_delete_content(place_fd, "root", &e) == 0);
	return 0;
}
