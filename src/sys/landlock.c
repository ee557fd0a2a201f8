/*
 * sys/landlock.c - rulesets of Landlock, asking of each kernel as much as it knows.
 */
#include "sys/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

/* Newer than some kernels' headers. */
#define ACCESS_REFER	 (UINT64_C(1) << 13)
#define ACCESS_TRUNCATE	 (UINT64_C(1) << 14)
#define ACCESS_IOCTL_DEV (UINT64_C(1) << 15)

#define ACCESS_FIRST ((UINT64_C(1) << 13) - 1) /* what the first version knew */
#define ACCESS_READ  ((uint64_t)(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR))
#define ACCESS_WRITE                                                                               \
	(ACCESS_READ | ACCESS_TRUNCATE |                                                           \
	 (uint64_t)(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG |                  \
		    LANDLOCK_ACCESS_FS_REMOVE_FILE))
#define ACCESS_OF_FILES                                                                            \
	(ACCESS_TRUNCATE | (uint64_t)(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE))

/* What the kernel can keep from us; 0 when it can do nothing. */
static uint64_t kernel_knows(void)
{
	long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	uint64_t known = ACCESS_FIRST;

	if (version < 1)
		return 0;
	if (version >= 2)
		known |= ACCESS_REFER;
	if (version >= 3)
		known |= ACCESS_TRUNCATE;
	if (version >= 5)
		known |= ACCESS_IOCTL_DEV;
	return known;
}

static int allow(int ruleset, const struct landlock_place *p, uint64_t known, struct err *e)
{
	osb_cleanup(fd_closep) int opened = -1;
	struct landlock_path_beneath_attr rule = {
		.allowed_access =
			known & (p->access == LANDLOCK_WRITE ? ACCESS_WRITE : ACCESS_READ),
		.parent_fd = p->fd,
	};
	struct stat st;

	if (!p->path && p->fd < 0)
		return 0;
	if (p->path) {
		opened = open(p->path, O_PATH | O_CLOEXEC);
		if (opened < 0)
			return 0;
		rule.parent_fd = opened;
	}
	if (fstat(rule.parent_fd, &st) < 0)
		return err_set(e, -errno, "file descriptor %d: %m", rule.parent_fd);
	if (!S_ISDIR(st.st_mode))
		rule.allowed_access &= ACCESS_OF_FILES;
	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		return err_set(e, -errno, "allow %s: %m", p->path ? p->path : "a directory");
	return 0;
}

int landlock_confine(const struct landlock_place *places, size_t n, struct err *e)
{
	struct landlock_ruleset_attr attr = {.handled_access_fs = kernel_knows()};
	osb_cleanup(fd_closep) int ruleset = -1;

	if (attr.handled_access_fs == 0)
		return 0;
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (ruleset < 0)
		return err_set(e, -errno, "make a ruleset for files: %m");
	for (size_t i = 0; i < n; i++) {
		int r = allow(ruleset, &places[i], attr.handled_access_fs, e);

		if (r < 0)
			return r;
	}
	if (syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		return err_set(e, -errno, "keep to some files: %m");
	return 0;
}
