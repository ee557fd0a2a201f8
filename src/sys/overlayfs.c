/*
 * sys/overlayfs.c - one layer after the other where the kernel takes them so, else one line of
 * text.
 */
#include "sys/overlayfs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "sys/mountfd.h"

/* What mount(2) takes of its last argument, with the NUL. */
#define TEXT_MAX 4096

#define FIXED_OPTIONS 6 /* besides the layers */

/* Since Linux 6.7 each layer may be an option of its own. */
static const char each[] = "lowerdir+";

static int by_option(const struct overlayfs *o, int target_fd, struct err *e)
{
	osb_cleanup(mem_freep) struct mountfd_option *options =
		mem_new_array(struct mountfd_option, FIXED_OPTIONS + o->lowers_n);
	osb_cleanup(fd_closep) int fd = -1;
	size_t n = 0;
	int r;

	options[n++] = (struct mountfd_option){"source", "overlay"};
	for (size_t i = 0; i < o->lowers_n; i++)
		options[n++] =
			(struct mountfd_option){o->lowers_n > 1 ? each : "lowerdir", o->lowers[i]};
	options[n++] = (struct mountfd_option){"upperdir", o->upper};
	options[n++] = (struct mountfd_option){"workdir", o->work};
	options[n++] = (struct mountfd_option){"redirect_dir", "nofollow"};
	options[n++] = (struct mountfd_option){"metacopy", "off"};
	options[n++] = (struct mountfd_option){"volatile", NULL};
	r = mountfd_new("overlay", options, n, MOUNTFD_NOSUID | MOUNTFD_NODEV, &fd, e);
	return r < 0 ? r : mountfd_attach_to(fd, target_fd, e);
}

int overlayfs_mount_by_text(const struct overlayfs *o, int target_fd, struct err *e)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(TEXT_MAX - 1);
	char target[40];
	int r = buf_append_str(&text, "volatile,redirect_dir=nofollow,metacopy=off,lowerdir=");

	for (size_t i = 0; r == 0 && i < o->lowers_n; i++)
		r = buf_printf(&text, "%s%s", i > 0 ? ":" : "", o->lowers[i]);
	if (r == 0)
		r = buf_printf(&text, ",upperdir=%s,workdir=%s", o->upper, o->work);
	if (r < 0)
		return err_set(e, -E2BIG, "this kernel takes no overlay of %zu layers like these",
			       o->lowers_n);
	snprintf(target, sizeof(target), "/proc/self/fd/%d", target_fd);
	if (mount("overlay", target, "overlay", MS_NOSUID | MS_NODEV, buf_str(&text)) < 0)
		return err_set(e, -errno, "mount an overlay of %zu layers: %m", o->lowers_n);
	return 0;
}

int overlayfs_mount(const struct overlayfs *o, int target_fd, struct err *e)
{
	struct mountfd_option first = {each, o->lowers[0]};

	if (o->lowers_n == 1 || mountfd_takes("overlay", &first))
		return by_option(o, target_fd, e);
	return overlayfs_mount_by_text(o, target_fd, e);
}
