/*
 * warden/small_root.c - builds the small root from copies of the host's mounts and pivots into it.
 */
#include "warden/small_root.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/setup.h"
#include "box/volumes.h"
#include "sys/clone.h"
#include "sys/mountfd.h"
#include "warden/options.h"
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

/* What the allowed host paths were when they were bound. */
static struct volumes_host hosts[OPTIONS_HOST_PATHS_MAX];

const struct volumes_host *small_root_hosts(void)
{
	return hosts;
}

/* What is mounted on the host later does not show up below. */
static int make_private(const char *path, struct err *e)
{
	if (mount(NULL, path, NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_set(e, -errno, "make %s private: %m", path);
	return 0;
}

static int bind_kept(struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		unsigned long flags = MS_BIND | (kept[i].with_submounts ? MS_REC : 0);

		if (mkdir(kept[i].to, 0755) < 0 ||
		    mount(kept[i].from, kept[i].to, NULL, flags, NULL) < 0)
			return err_set(e, -errno, "bind %s: %m", kept[i].from);
		if (make_private(kept[i].to, e) < 0)
			return e->code;
	}
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		if (symlink(links[i][0], links[i][1]) < 0)
			return err_set(e, -errno, "link %s: %m", links[i][1]);
	return 0;
}

/* `path` with all that is and will be mounted below it, at `to`. */
static int bind_tree(const char *path, const char *to, struct err *e)
{
	osb_cleanup(fd_closep) int dir = -1, copy = -1;
	int r;

	dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_set(e, -errno, "open %s: %m", path);
	r = mountfd_clone_tree(dir, &copy, e);
	if (r == 0 && mkdir(to, 0700) < 0 && errno != EEXIST)
		r = err_set(e, -errno, "mkdir %s: %m", to);
	return r < 0 ? r : mountfd_attach(copy, AT_FDCWD, to, e);
}

/* As mkdir -p does it; what the operator allowed is the operator's to arrange. */
static void make_missing(const char *path)
{
	osb_cleanup(mem_freep) char *prefix = mem_strdup(path);
	struct stat st;

	if (stat(path, &st) == 0)
		return;
	for (char *at = prefix + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		(void)mkdir(prefix, 0755); /* opening it tells */
		*at = '/';
	}
	if (mkdir(path, 0755) == 0)
		log_line(LOG_INFO, "an allowed host path was made", LOG_S("path", path));
}

/* Its parent comes along, alone, so that volumes find what replaces it.  Where it is a link, or
 * something that cannot be seen this way, what it led to at first stays. */
static void bind_parent(const char *path, size_t i)
{
	osb_cleanup(mem_freep) char *parent = mem_strdup(path), *name = NULL;
	osb_cleanup(fd_closep) int copy = -1, dir = -1;
	struct err e = ERR_NONE;
	struct stat st;
	char to[32];

	for (size_t n = strlen(parent); n > 0 && parent[n - 1] == '/'; n--)
		parent[n - 1] = '\0';
	if (!strrchr(parent, '/'))
		return;
	name = mem_strdup(strrchr(parent, '/') + 1);
	strrchr(parent, '/')[1] = '\0';
	snprintf(to, sizeof(to), "parents/%zu", i);
	if (mountfd_clone(AT_FDCWD, parent, &copy, &e) < 0 || mkdir(to, 0700) < 0 ||
	    mountfd_attach(copy, AT_FDCWD, to, &e) < 0 || make_private(to, &e) < 0)
		return;
	dir = open(to, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0 ||
	    !S_ISDIR(st.st_mode))
		return;
	hosts[i] = (struct volumes_host){.name = name, .dev = st.st_dev, .ino = st.st_ino};
	name = NULL;
}

static size_t length_of(const char *path)
{
	size_t n = strlen(path);

	while (n > 0 && path[n - 1] == '/')
		n--;
	return n;
}

/* Sandboxes that have the outer one may have put a link to anywhere in its place. */
static bool lies_in_another(const struct options *o, size_t i)
{
	size_t own = length_of(o->host_paths[i]);

	for (size_t k = 0; k < o->host_paths_n; k++) {
		size_t n = length_of(o->host_paths[k]);

		if (n < own && strncmp(o->host_paths[i], o->host_paths[k], n) == 0 &&
		    o->host_paths[i][n] == '/')
			return true;
	}
	return false;
}

/* One that cannot be had is missing, and volumes in it fail; the rest works.  What lies in another
 * is reached through that one. */
static int bind_host_paths(const struct options *o, struct err *e)
{
	char to[32];

	if (mkdir("hosts", 0700) < 0 || mkdir("parents", 0700) < 0)
		return err_set(e, -errno, "mkdir: %m");
	for (size_t i = 0; i < o->host_paths_n; i++) {
		struct err why = ERR_NONE;

		if (lies_in_another(o, i))
			continue;
		make_missing(o->host_paths[i]);
		snprintf(to, sizeof(to), "hosts/%zu", i);
		if (bind_tree(o->host_paths[i], to, &why) < 0)
			log_line(LOG_WARN, "no volumes in an allowed host path",
				 LOG_S("path", o->host_paths[i]), LOG_S("err", why.msg));
		else
			bind_parent(o->host_paths[i], i);
	}
	return 0;
}

/* The supervisor mounts object stores there, if it is made for that. */
static int bind_mounted(const struct options *o, struct err *e)
{
	osb_cleanup(mem_freep) char *path = mem_printf("%s/ossfs", o->state_dir);
	struct stat st;

	return stat(path, &st) < 0 ? 0 : bind_tree(path, "state/ossfs", e);
}

static int fill(const struct options *o, int state_fd, struct err *e)
{
	int r = bind_kept(e);

	if (r < 0)
		return r;
	if (mkdir("state", 0755) < 0 || mkdir("new", 0755) < 0 || mkdir("proc", 0755) < 0 ||
	    mkdir("tmp", 0700) < 0 || mkdir("shared", 0755) < 0 || mkdir("run", 0755) < 0 ||
	    mkdir("etc", 0755) < 0)
		return err_set(e, -errno, "mkdir: %m");
	r = mountfd_attach(state_fd, AT_FDCWD, "state", e);
	if (r == 0)
		r = make_private("state", e);
	if (r == 0)
		r = bind_mounted(o, e);
	if (r == 0)
		r = bind_host_paths(o, e);
	if (r == 0 && mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		r = err_set(e, -errno, "mount proc: %m");
	return r;
}

/* What lies at the bottom of every namespace holds nothing: see setup.h. */
static int mount_bottom(int *ret, struct err *e)
{
	struct mountfd_option o[] = {{"mode", "0755"}, {"size", "16k"}};
	int r = mountfd_new("tmpfs", o, ARRAY_LEN(o), MOUNTFD_NOSUID, ret, e);

	if (r == 0)
		r = mountfd_attach(*ret, AT_FDCWD, STAGE, e);
	if (r == 0 && mkdir(STAGE "/" SETUP_ABOVE, 0755) < 0)
		r = err_set(e, -errno, "mkdir: %m");
	return r;
}

/* Names are the same as if what lies above were the root. */
static int link_names(struct err *e)
{
	DIR *d = opendir(SETUP_ABOVE);
	struct dirent *entry;
	int r = d ? 0 : err_set(e, -errno, "list the small root: %m");

	while (r == 0 && (entry = readdir(d))) {
		char target[sizeof(SETUP_ABOVE "/") + sizeof(entry->d_name)];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(target, sizeof(target), SETUP_ABOVE "/%s", entry->d_name);
		if (symlink(target, entry->d_name) < 0)
			r = err_set(e, -errno, "link %s: %m", entry->d_name);
	}
	if (d)
		closedir(d);
	return r;
}

static int enter_bottom(int bottom, struct err *e)
{
	int r;

	if (chdir(STAGE) < 0)
		return err_set(e, -errno, "chdir: %m");
	r = link_names(e);
	if (r == 0)
		r = clone_pivot_root(e);
	if (r < 0)
		return r;
	if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return err_set(e, -errno, "leave the old root: %m");
	return mountfd_shape(
		bottom, MOUNTFD_RDONLY | MOUNTFD_NOSUID | MOUNTFD_NODEV | MOUNTFD_NOEXEC, -1, e);
}

int small_root_enter(const struct options *o, struct err *e)
{
	struct mountfd_option tmpfs[] = {{"mode", "0755"}, {"size", "1m"}};
	osb_cleanup(fd_closep) int bottom = -1, root = -1, state = -1;
	int r;

	if (unshare(CLONE_NEWNS) < 0)
		return err_set(e, -errno, "unshare the mount namespace: %m");
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return err_set(e, -errno, "keep mounts to ourselves: %m");
	r = mountfd_clone(AT_FDCWD, o->state_dir, &state, e);
	if (r == 0)
		r = mountfd_new("tmpfs", tmpfs, ARRAY_LEN(tmpfs), MOUNTFD_NOSUID, &root, e);
	if (r == 0)
		r = mount_bottom(&bottom, e);
	if (r == 0)
		r = mountfd_attach(root, AT_FDCWD, STAGE "/" SETUP_ABOVE, e);
	if (r < 0)
		return r;
	if (chdir(STAGE "/" SETUP_ABOVE) < 0)
		return err_set(e, -errno, "chdir: %m");
	r = fill(o, state, e);
	return r < 0 ? r : enter_bottom(bottom, e);
}
