/*
 * box/rootfs.c - overlays of idmapped layers.
 *
 * Layers and the writable directory are copies of mounts whose ids are shifted into the sandbox's
 * range: nothing is chowned, and what the sandbox writes lies on disk with plain ids, an ordinary
 * layer.
 */
#include "box/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "box/setup.h"
#include "sys/fsids.h"
#include "sys/mountfd.h"

static int idmapped(const char *path, const struct setup *s, unsigned attrs, int *ret,
		    struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	int r = mountfd_clone(AT_FDCWD, path, &fd, e);

	if (r == 0)
		r = mountfd_shape(fd, attrs, s->userns_fd, e);
	/* Kernels before 6.15 make overlays only of mounts in the caller's namespace.  Below the
	 * new root the layers are out of sight, and go with the old root. */
	if (r == 0)
		r = mountfd_attach(fd, AT_FDCWD, s->new_root, e);
	if (r < 0)
		return err_ctx(e, "layer '%s'", path);
	*ret = take_fd(fd);
	return 0;
}

/* Overlay acts with the ids of whoever mounts it: those of the sandbox's root. */
static int overlay(const struct setup *s, int lower_fd, int box_fd, const char *upper,
		   const char *work, int *ret, struct err *e)
{
	char lowerdir[40], upperdir[64], workdir[64];
	struct mountfd_option options[] = {
		{"source", "overlay"}, {"lowerdir", lowerdir}, {"upperdir", upperdir},
		{"workdir", workdir},  {"volatile", NULL},
	};
	int r;

	snprintf(lowerdir, sizeof(lowerdir), "/proc/self/fd/%d", lower_fd);
	snprintf(upperdir, sizeof(upperdir), "/proc/self/fd/%d/%s", box_fd, upper);
	snprintf(workdir, sizeof(workdir), "/proc/self/fd/%d/%s", box_fd, work);
	r = fsids_become(s->id_base, e);
	if (r < 0)
		return r;
	r = mountfd_new("overlay", options, ARRAY_LEN(options), MOUNTFD_NODEV, ret, e);
	if (fsids_restore(e) < 0)
		return e->code;
	return r;
}

int rootfs_mount(const struct setup *s, struct err *e)
{
	osb_cleanup(fd_closep) int image = -1, box = -1, usr = -1, root = -1, usr_root = -1;
	int r;

	r = idmapped(s->image, s, MOUNTFD_RDONLY, &image, e);
	if (r == 0)
		r = idmapped(s->layers, s, 0, &box, e);
	if (r == 0 && s->usr)
		r = idmapped(s->usr, s, MOUNTFD_RDONLY, &usr, e);
	if (r == 0)
		r = overlay(s, image, box, "upper", "work", &root, e);
	if (r == 0)
		r = mountfd_attach(root, AT_FDCWD, s->new_root, e);
	if (r < 0)
		return r;
	if (chdir(s->new_root) < 0)
		return err_set(e, -errno, "chdir '%s': %m", s->new_root);
	if (!s->usr)
		return 0;
	r = overlay(s, usr, box, "usr-upper", "usr-work", &usr_root, e);
	if (r == 0)
		r = mountfd_attach(usr_root, AT_FDCWD, "usr", e);
	return r;
}
