/*
 * codec/docker_config.h - credentials in Docker's config.json.
 */
#pragma once

#include "base/macro.h"
#include "base/view.h"

struct arena;
struct err;

struct docker_auth {
	struct view username, password;
	struct view identity_token; /* instead of a password, for the token server alone */
	struct view helper; /* a credential helper that would know, if we could ask it; or empty */
};

/*
 * What the file holds for a registry ("docker.io", "registry:5000"): 1 found, 0 nothing (but
 * `helper` may be set), -EINVAL malformed.  Lives in the arena.
 */
osb_must_check int docker_config_find(struct view text, struct view registry, struct arena *a,
				      struct docker_auth *ret, struct err *e);
