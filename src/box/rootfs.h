/*
 * box/rootfs.h - the sandbox's file tree: overlay, /proc, /sys, /dev.
 *
 * All of these run in the child, still privileged, in its own mount namespace; the new root is the
 * current directory after rootfs_mount().
 */
#pragma once

#include "base/macro.h"

struct err;
struct setup;

osb_must_check int rootfs_mount(const struct setup *s, struct err *e);
osb_must_check int rootfs_mount_proc(const struct setup *s, struct err *e);
osb_must_check int rootfs_mount_sys(const struct setup *s, struct err *e);
osb_must_check int rootfs_mount_dev(const struct setup *s, struct err *e);
