/*
 * box/volumes.h - directories that outlive the sandbox, put into its root.
 *
 * Each volume is a copy of its mount, the ids shifted into the sandbox's range, nosuid and nodev.
 * A failure names the volume: "volumes[2]: ...".  -EXDEV and -ELOOP mean that a link in it leads
 * out.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/macro.h"
#include "codec/warden_mounts.h"

struct err;
struct setup;

/* What lay at an allowed host path when it was bound, as seen in its parent. */
struct volumes_host {
	const char *name; /* in the parent; NULL: never look again */
	dev_t dev;
	ino_t ino;
};

/* Detached mounts, one a volume; -1 = none. */
struct volumes_copies {
	int fds[WARDEN_VOLUMES_MAX];
};

/* Where the volumes can be seen.  *ret is to be ended in any case. */
osb_must_check int volumes_copy(const struct setup *s, struct volumes_copies *ret, struct err *e);
void volumes_copies_done(struct volumes_copies *m);

/* Where the current directory is the sandbox's root. */
osb_must_check int volumes_attach(const struct setup *s, const struct volumes_copies *m,
				  struct err *e);

/* Both: in the child that becomes the sandbox. */
osb_must_check int volumes_mount(const struct setup *s, struct err *e);

/*
 * Both for a sandbox that is there already, and waits: a process of its own copies, enters that
 * mount namespace and attaches, so that nothing slow or hostile on the way holds anybody else up.
 * Of the setup only volumes, ids and their directories count.  The report becomes readable when it
 * is done or has failed.
 */
osb_must_check int volumes_join_start(const struct setup *s, int box_pidfd, int *ret_pidfd,
				      int *ret_report_fd, struct err *e);

/* Reads the report and lets the process end; both descriptors stay the caller's. */
osb_must_check int volumes_join_result(int report_fd, int pidfd, struct err *e);
