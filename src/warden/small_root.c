/*
 * warden/small_root.c - builds the small root from copies of the host's mounts and pivots into it.
 */
#include "warden/small_root.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "sys/clone.h"
#include "sys/mountfd.h"
#include "warden/paths.h"

#define STAGE                                                                                      \
	"/proc" /* any directory that exists everywhere: only this namespace sees it covered */

/* What the warden, nft and a sandbox's set-up need of the host. */
static const struct {
	const char *from, *to;
	bool with_submounts;
} kept[] = {
	{"/usr", "usr", false},
	{"/dev", "dev", false},
	{"/sys", "sys", true}, /* cgroup hierarchies are mounts below it */
};

static const char *const links[][2] = {
	{"usr/bin", "bin"},
	{"usr/sbin", "sbin"},
	{"usr/lib", "lib"},
	{"usr/lib64", "lib64"},
};

static int bind_kept(struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		unsigned long flags = MS_BIND | (kept[i].with_submounts ? MS_REC : 0);

		if (mkdir(kept[i].to, 0755) < 0 ||
		    mount(kept[i].from, kept[i].to, NULL, flags, NULL) < 0)
			return err_set(e, -errno, "bind %s: %m", kept[i].from);
	}
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		if (symlink(links[i][0], links[i][1]) < 0)
			return err_set(e, -errno, "link %s: %m", links[i][1]);
	return 0;
}

static int fill(int state_fd, struct err *e)
{
	int r = bind_kept(e);

	if (r < 0)
		return r;
	if (mkdir("state", 0755) < 0 || mkdir("new", 0755) < 0 || mkdir("proc", 0755) < 0 ||
	    mkdir("tmp", 0700) < 0 || mkdir("run", 0755) < 0 || mkdir("etc", 0755) < 0)
		return err_set(e, -errno, "mkdir: %m");
	r = mountfd_attach(state_fd, AT_FDCWD, "state", e);
	if (r == 0 && mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		r = err_set(e, -errno, "mount proc: %m");
	return r;
}

int small_root_enter(const char *state_dir, struct err *e)
{
	struct mountfd_option o[] = {{"mode", "0755"}, {"size", "1m"}};
	osb_cleanup(fd_closep) int root = -1, state = -1;
	int r;

	if (unshare(CLONE_NEWNS) < 0)
		return err_set(e, -errno, "unshare the mount namespace: %m");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_set(e, -errno, "make mounts private: %m");
	r = mountfd_clone(AT_FDCWD, state_dir, &state, e);
	if (r == 0)
		r = mountfd_new("tmpfs", o, ARRAY_LEN(o), MOUNTFD_NOSUID, &root, e);
	if (r == 0)
		r = mountfd_attach(root, AT_FDCWD, STAGE, e);
	if (r < 0)
		return r;
	if (chdir(STAGE) < 0)
		return err_set(e, -errno, "chdir: %m");
	r = fill(state, e);
	if (r == 0)
		r = clone_pivot_root(e);
	if (r < 0)
		return r;
	if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return err_set(e, -errno, "leave the old root: %m");
	return 0;
}
