/*
 * execd/overlay_marks.c - whiteouts and opaque directories.
 */
#include "execd/overlay_marks.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"

bool overlay_is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

bool overlay_is_opaque(int dir_fd, const char *name)
{
	static const char *const names[] = {"trusted.overlay.opaque", "user.overlay.opaque"};
	osb_cleanup(fd_closep) int fd = -1;
	char value[4];

	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	for (size_t i = 0; fd >= 0 && i < ARRAY_LEN(names); i++)
		if (fgetxattr(fd, names[i], value, sizeof(value)) == 1 && value[0] == 'y')
			return true;
	return false;
}
