/*
 * box/rootfs.c - overlays of idmapped layers.
 *
 * Layers and the writable directory are copies of mounts whose ids are shifted into the sandbox's
 * range: nothing is chowned, and what the sandbox writes lies on disk with plain ids, an ordinary
 * layer.  All images are one such copy, and layers are named relative to it: names stay short,
 * however many there are.
 */
#include "box/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "box/furnish.h"
#include "box/setup.h"
#include "codec/warden_mounts.h"
#include "sys/fsids.h"
#include "sys/mountfd.h"
#include "sys/overlayfs.h"

#define LOWER_NAME sizeof("18446744073709551615/root")
#define LOWERS	   (WARDEN_LAYERS_MAX + 1) /* the host image, too */

/* Names of lower directories, highest first. */
struct lowers {
	char names[LOWERS][LOWER_NAME];
	const char *v[LOWERS];
	size_t n;
};

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
static int overlay(const struct setup *s, const struct lowers *l, int box_fd, const char *prefix,
		   int target_fd, struct err *e)
{
	char upper[64], work[64];
	struct overlayfs o = {.lowers = l->v, .lowers_n = l->n, .upper = upper, .work = work};
	int r;

	snprintf(upper, sizeof(upper), "/proc/self/fd/%d/%supper", box_fd, prefix);
	snprintf(work, sizeof(work), "/proc/self/fd/%d/%swork", box_fd, prefix);
	r = fsids_become(s->id_base, e);
	if (r < 0)
		return r;
	r = overlayfs_mount(&o, target_fd, e);
	if (fsids_restore(e) < 0)
		return e->code;
	/* Names of ours, of directories that nobody else makes: a loop is no link that leads out.
	 */
	return r == -ELOOP ? err_set(e, -EINVAL, "layers that lie in each other") : r;
}

static void add_lower(struct lowers *l, uint64_t number, const char *part)
{
	snprintf(l->names[l->n], LOWER_NAME, "%" PRIu64 "/%s", number, part);
	l->v[l->n] = l->names[l->n];
	l->n++;
}

/* A layer may hide all that lies below.  Overlayfs asks every directory but the top of a layer. */
static bool hides_below(const char *layer)
{
	char value[2];

	return lgetxattr(layer, "trusted.overlay.opaque", value, sizeof(value)) == 1 &&
	       value[0] == 'y';
}

/* The host image is named from its descriptor: what was attached since lies over the way up. */
static int mount_root(const struct setup *s, int images_fd, int box_fd, struct err *e)
{
	osb_cleanup(fd_closep) int target = -1;
	struct lowers l = {.n = 0};
	bool hidden = false;
	char host[64];

	for (size_t i = s->layers_n; !hidden && i-- > 0;) {
		add_lower(&l, s->layers[i], "root");
		hidden = hides_below(l.v[l.n - 1]);
	}
	snprintf(host, sizeof(host), "/proc/self/fd/%d/host/rootfs", images_fd);
	if (s->host_base && !hidden)
		l.v[l.n++] = host;
	target = open(s->new_root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (target < 0)
		return err_set(e, -errno, "open '%s': %m", s->new_root);
	return overlay(s, &l, box_fd, "", target, e);
}

/* The host's own /usr, with what sandboxes that were captured have changed in it. */
static int mount_usr(const struct setup *s, int usr_fd, int box_fd, struct err *e)
{
	osb_cleanup(fd_closep) int root = -1, target = -1;
	struct lowers l = {.n = 0};
	char host[40];

	for (size_t i = s->layers_n; i-- > 0;) {
		add_lower(&l, s->layers[i], "usr");
		if (access(l.v[l.n - 1], F_OK) < 0)
			l.n--;
	}
	snprintf(host, sizeof(host), "/proc/self/fd/%d", usr_fd);
	l.v[l.n++] = host;
	root = open(s->new_root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	target = openat(root, "usr", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (target < 0)
		return err_set(e, -errno, "open /usr: %m");
	return overlay(s, &l, box_fd, "usr-", target, e);
}

static int enter_layers(int images_fd, struct err *e)
{
	if (fchdir(images_fd) < 0 || chdir("layers") < 0)
		return err_set(e, -errno, "chdir images/layers: %m");
	return 0;
}

int rootfs_mount(const struct setup *s, struct err *e)
{
	osb_cleanup(fd_closep) int images = -1, box = -1, usr = -1;
	int r;

	r = idmapped(s->images, s, MOUNTFD_RDONLY, &images, e);
	if (r == 0)
		r = idmapped(s->writable, s, 0, &box, e);
	if (r == 0 && s->host_base)
		r = idmapped(s->usr, s, MOUNTFD_RDONLY, &usr, e);
	if (r == 0)
		r = enter_layers(images, e);
	if (r == 0)
		r = mount_root(s, images, box, e);
	if (r == 0 && s->host_base)
		r = mount_usr(s, usr, box, e);
	if (r == 0 && chdir(s->new_root) < 0)
		r = err_set(e, -errno, "chdir '%s': %m", s->new_root);
	/* The host image has all there must be, and nobody else has written into it. */
	if (r == 0 && s->layers_n > 0)
		r = furnish(s, images, e);
	return r;
}
