/*
 * image/volume_store.h - named volumes by number: N/data in one directory.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"

struct err;

/* Makes it, or leaves the one that is there as it is. */
osb_must_check int volume_store_make(int volumes_fd, uint64_t number, struct err *e);

/* Its data; the caller owns *ret_fd. */
osb_must_check int volume_store_open(int volumes_fd, uint64_t number, int *ret_fd, struct err *e);

/* Out of sight at once, then away.  None there is fine. */
osb_must_check int volume_store_remove(int volumes_fd, uint64_t number, struct err *e);

/* Removes those below number `next` that are not among `keep` (sorted), and what is left of
 * removals. */
osb_must_check int volume_store_clean(int volumes_fd, const uint64_t *keep, size_t n, uint64_t next,
				      struct err *e);
