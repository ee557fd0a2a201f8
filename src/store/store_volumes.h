/*
 * store/store_volumes.h - named volumes: directories that outlive sandboxes.
 *
 * A volume's number names its directory and is never used twice.  Strings are borrowed by calls,
 * and valid only inside the callback of a load.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"

struct err;
struct store;

struct store_volume {
	uint64_t number;
	const char *name;
	int64_t created_us; /* Unix microseconds */
	/* The sandbox whose request made it; "" for one that was made by itself. */
	const char *made_by;
};

osb_must_check int store_put_volume(struct store *s, const struct store_volume *v,
				    struct err *e); /* insert or replace */
osb_must_check int store_delete_volume(struct store *s, uint64_t number, struct err *e);
osb_must_check int store_each_volume(struct store *s,
				     int (*fn)(void *arg, const struct store_volume *v), void *arg,
				     struct err *e); /* oldest first */
