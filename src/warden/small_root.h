/*
 * warden/small_root.h - the warden's own mount namespace: a root with the few mounts it needs and
 * nothing else.
 */
#pragma once

#include "base/macro.h"

struct err;
struct options;
struct volumes_host;

/* Every clone copies the caller's mounts: after this there are a handful, however many the host
 * has.  The state directory and each allowed host path come along, a missing one of these is made;
 * what is mounted below a host path later shows up, and so does what replaces it. */
osb_must_check int small_root_enter(const struct options *o, struct err *e);

/* OPTIONS_HOST_PATHS_MAX of them. */
const struct volumes_host *small_root_hosts(void);
