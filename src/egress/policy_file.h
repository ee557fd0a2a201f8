/*
 * egress/policy_file.h - a policy that outlives a sidecar: loaded first, written after each change.
 */
#pragma once

#include "base/macro.h"

struct err;
struct net_policy;

enum policy_source { POLICY_FROM_FILE, POLICY_FROM_RULES, POLICY_FROM_NOTHING };

/*
 * The file's policy, or that of `rules` (JSON) if there is no file, it is empty or not a policy, or
 * `path` is ""; without either, everything is denied.  -errno with a sentence if the file cannot be
 * read or `rules` are no policy.  *ret_wrong says what is wrong with a file that was passed over.
 */
osb_must_check int policy_file_load(const char *path, const char *rules, struct net_policy *ret,
				    enum policy_source *ret_source, struct err *ret_wrong,
				    struct err *e);

/* Replaces the file at once, or leaves it as it was.  Does nothing if `path` is "". */
osb_must_check int policy_file_save(const char *path, const struct net_policy *p, struct err *e);
