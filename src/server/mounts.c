/*
 * server/mounts.c - a mount namespace in which buckets can be mounted without anybody on the host
 * seeing them.
 */
#include "server/mounts.h"

#include <errno.h>
#include <sched.h>
#include <sys/mount.h>

#include "base/err.h"
#include "base/mem.h"
#include "server/state_dir.h"

int mounts_separate(const char *state_dir, struct err *e)
{
	osb_cleanup(mem_freep) char *path = mem_printf("%s/%s", state_dir, STATE_DIR_BUCKETS);

	if (unshare(CLONE_NEWNS) < 0)
		return err_set(e, -errno, "unshare the mount namespace: %m");
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return err_set(e, -errno, "keep mounts to ourselves: %m");
	if (mount(path, path, NULL, MS_BIND, NULL) < 0 ||
	    mount(NULL, path, NULL, MS_SHARED, NULL) < 0)
		return err_set(e, -errno, "share %s: %m", path);
	return 0;
}
