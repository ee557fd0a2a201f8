/*
 * server/request_ossfs.h - the backend `ossfs` of a volume: checked, nothing looked up.
 */
#pragma once

#include "base/macro.h"

struct failure;
struct json;
struct volume;

/* Fills out->kind and out->bucket; out->name is set already. */
osb_must_check int request_ossfs(const struct json *ossfs, struct volume *out, struct failure *f);
