/*
 * box/volumes.h - directories that outlive the sandbox, put into its root.
 */
#pragma once

#include "base/macro.h"

struct err;
struct setup;

/*
 * Runs in the child, the new root being the current directory and nothing else mounted in it yet.
 * Each volume is a copy of its mount, the ids shifted into the sandbox's range, nosuid and nodev.
 * A failure names the volume: "volumes[2]: ...".  -EXDEV and -ELOOP mean that a link in it leads
 * out.
 */
osb_must_check int volumes_mount(const struct setup *s, struct err *e);
