/*
 * sys/fsids.h - other ids for file systems while everything else stays root.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"

struct err;

/* fsuid and fsgid become `id`; the capabilities that the kernel drops with them are raised again.
 */
osb_must_check int fsids_become(uint32_t id, struct err *e);
osb_must_check int fsids_set(uint32_t uid, uint32_t gid, struct err *e); /* the same with two */
osb_must_check int fsids_restore(struct err *e);			 /* root again */
