/*
 * box/furnish.h - what every root must have, whoever made its layers.
 */
#pragma once

#include "base/macro.h"

struct err;
struct setup;

/*
 * In the current directory, the new root: /proc, /sys and /dev become plain directories, whatever
 * they were; /tmp and /etc are made if they are missing; /etc/resolv.conf is ours, /etc/hosts and
 * /etc/hostname are unless there are such.  Nothing is followed out of the root.  `images_fd` shows
 * the images: the host image has the files to copy.
 */
osb_must_check int furnish(const struct setup *s, int images_fd, struct err *e);
