/*
 * image/host.h - the image that every machine has: the host's /usr, read-only, and a root made for
 * it.
 */
#pragma once

#include "base/macro.h"

struct err;
struct resolv_conf;

/* The name servers that a sandbox can ask: the host's, or those behind its local stub. */
void host_image_dns(struct resolv_conf *ret);

/*
 * Makes or renews `dir`/rootfs: empty mount points, links into /usr, a minimal /etc (passwd, group,
 * hosts, resolv.conf, nsswitch.conf, CA certificates, ld.so.cache, alternatives, the settings of
 * JDKs), /root, /tmp, /home, /var, /opt/code-interpreter.  Nothing of the host's secrets, homes,
 * logs or configuration.
 * A new tree is built beside the old one and exchanged, so that running sandboxes keep theirs; when
 * nothing has changed, nothing is written.  `dir` exists.  Reads the host's /etc: to be called
 * before the caller gives its own view of it up.
 */
osb_must_check int host_image_refresh(const char *dir, const struct resolv_conf *dns,
				      struct err *e);

/* Removes older trees: only when no sandbox runs. */
void host_image_prune(const char *dir);
