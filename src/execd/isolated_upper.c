/*
 * execd/isolated_upper.c - the upper directory of an overlay: made, and taken away.
 */
#include "execd/isolated_upper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "execd/paths.h"
#include "execd/tree_remove.h"

int isolated_upper_make(const char *root, const char *id, const char *workspace, char **ret,
			struct err *e)
{
	osb_cleanup(mem_freep) char *dir = mem_printf("%s/%s", root, id);
	osb_cleanup(mem_freep) char *upper = mem_printf("%s/upper", dir);
	osb_cleanup(mem_freep) char *work = mem_printf("%s/work", dir);
	struct stat st;

	if (paths_make_dirs(root, e) < 0)
		return e->code;
	if (chmod(root, 0700) < 0)
		return err_set(e, -errno, "'%s': %m", root);
	if (stat(workspace, &st) < 0)
		return err_set(e, -errno, "'%s': %m", workspace);
	if (mkdir(dir, 0700) < 0 || mkdir(upper, 0700) < 0 || mkdir(work, 0700) < 0 ||
	    chmod(upper, st.st_mode & 07777) < 0)
		return err_set(e, -errno, "make '%s': %m", dir);
	/* Without the right to give files away the upper stays ours, as all of the session's. */
	(void)!chown(upper, st.st_uid, st.st_gid);
	*ret = take_ptr(dir);
	return 0;
}

int isolated_upper_remove(const char *path, struct err *e)
{
	osb_cleanup(mem_freep) char *inner = mem_printf("%s/work/work", path);

	/* The kernel leaves a directory that only root can open. */
	(void)!chmod(inner, 0700);
	return tree_remove(AT_FDCWD, path, e);
}
