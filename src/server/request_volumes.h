/*
 * server/request_volumes.h - the field `volumes` of POST /sandboxes: checked, nothing looked up.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macro.h"
#include "base/view.h"

struct failure;
struct json;
struct strv;
struct volumes_list;

#define REQUEST_VOLUMES_MAX	64
#define REQUEST_CLAIM_MAX	253
#define REQUEST_VOLUME_PATH_MAX 1023

/* Reads body.volumes.  `allowed` are the directories of the host that may be mounted; with none,
 * every host volume is refused.  On failure *ret is as it was. */
osb_must_check int request_volumes(const struct json *body, const struct strv *allowed,
				   struct volumes_list *ret, struct failure *f);

/* A DNS label, at most `max` characters. */
bool request_volume_name_valid(struct view name, size_t max);
