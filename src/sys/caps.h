/*
 * sys/caps.h - what a process may do beyond its user's rights.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"

struct err;

/* May we mount and make namespaces (CAP_SYS_ADMIN)? */
bool caps_can_mount(void);

/* May we become any user and group? */
bool caps_can_change_user(void);

/*
 * Nothing that is executed from now on gets more than an ordinary container's root needs for its
 * own files and processes: no mounts, no devices, no tracing, no network administration.
 */
osb_must_check int caps_limit(struct err *e);

/* Effective = permitted. */
osb_must_check int caps_raise_effective(struct err *e);

/* Bounding, permitted, effective: only `mask` (bit n = capability n); inheritable and ambient:
 * none. */
osb_must_check int caps_keep_only(uint64_t mask, struct err *e);

/* The same, but who may not change the bounding set keeps it: with no_new_privs it says nothing. */
osb_must_check int caps_keep_at_most(uint64_t mask, struct err *e);
osb_must_check int caps_drop_all(struct err *e);

/* Only what reading and unlinking the files of others takes. */
osb_must_check int caps_keep_file_rights(struct err *e);

/* What it takes to make files of any owner and kind, whiteouts and overlayfs's marks included. */
osb_must_check int caps_keep_layer_rights(struct err *e);
