/*
 * image/host.h - the image that every machine has: the host's /usr, read-only, and a root made for
 * it.
 */
#pragma once

#include "base/macro.h"

struct err;

/*
 * Makes or renews `dir`/rootfs: empty mount points, links into /usr, a minimal /etc (passwd, group,
 * hosts, resolv.conf, nsswitch.conf, CA certificates, ld.so.cache, alternatives), /root, /tmp,
 * /home, /var, /opt/code-interpreter.  Nothing of the host's secrets, homes, logs or configuration.
 * A new tree is built beside the old one and exchanged, so that running sandboxes keep theirs.
 */
osb_must_check int host_image_refresh(const char *dir, struct err *e);
