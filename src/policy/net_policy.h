/*
 * policy/net_policy.h - what a sandbox may reach: rules in order, and what holds when none matches.
 *
 * A rule names a host (`example.com`), every host below a domain (`*.example.com`, not the domain
 * itself), an address or a network in CIDR form.  The first rule that matches decides.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct err;
struct json;
struct json_writer;
struct net_index;
struct net_text;

#define NET_TARGET_MAX 255
#define NET_RULES_MAX  4096 /* default ceiling of one policy */

enum net_target_kind { NET_HOST, NET_BELOW, NET_ADDRESSES };

/* In a lenient mode nothing that a rule of the policy refuses is refused; it is recorded. */
enum net_mode {
	NET_ENFORCE,
	NET_LEARN,   /* to find out what a policy has to allow */
	NET_DRY_RUN, /* to find out what this policy would refuse */
};

struct net_prefix {
	bool v6;
	uint8_t bytes[16];
	unsigned bits;
};

struct net_rule {
	bool allow;
	bool always; /* the operator's: holds in every mode */
	enum net_target_kind kind;
	char *target; /* as written, trimmed */
	char *key;    /* the same in lower case: what makes two targets one */
	char *name;   /* NET_HOST, NET_BELOW: lower case, no "*.", no last dot */
	struct net_prefix prefix;
	struct net_text *text; /* where these texts are; shared by copies of the rule */
};

struct net_policy {
	enum net_mode mode;
	bool default_allow;
	struct net_rule *rules;
	size_t n;
	struct net_index *index; /* or NULL */
};

/* Denies everything: what an empty policy means. */
#define NET_POLICY_NONE ((struct net_policy){0})

void net_policy_done(struct net_policy *p);

/*
 * From `{"defaultAction": ..., "egress": [{"action": ..., "target": ...}], "mode": ...}`; NULL and
 * {} deny all.  -EINVAL with a sentence that names the rule, -E2BIG over `max` rules (0 = no
 * limit).
 */
osb_must_check int net_policy_from_json(const struct json *v, size_t max, struct net_policy *ret,
					struct err *e);

/* Puts the rules of a JSON array before the others; a target that is named twice counts once, and
 * replaces the rule that had it.  On failure nothing has changed. */
osb_must_check int net_policy_merge(struct net_policy *p, const struct json *rules, size_t max,
				    struct err *e);

/* Takes away the rules of the targets in a JSON array of strings; *ret_n says how many. */
osb_must_check int net_policy_remove(struct net_policy *p, const struct json *targets,
				     size_t *ret_n, struct err *e);

/* Adds one rule per line, `#` begins a comment: lists of the operator, whose rules are marked as
 * such.  Lines that are no target are counted, not taken. */
void net_policy_add_lines(struct net_policy *p, struct view text, bool allow, size_t max,
			  size_t *ret_bad);

/* Adds a rule behind the others; false if `target` is none. */
bool net_policy_add(struct net_policy *p, bool allow, struct view target);

/* Adds copies of `from`'s rules behind those of `p`; cheap, their texts are shared. */
void net_policy_append(struct net_policy *p, const struct net_policy *from);

/* {"defaultAction":"deny","egress":[...]}; "egress" is always an array, "mode" is there if it is
 * not "enforce". */
void net_policy_write(const struct net_policy *p, struct json_writer *w);

/* "learn" or "dry-run"; otherwise "allow_all", "deny_all" or "enforcing". */
const char *net_policy_mode(const struct net_policy *p);

/* Are there names that it refuses? */
bool net_policy_denies_names(const struct net_policy *p);

/* Does what `rule` (NULL = the default) refuses pass all the same? */
bool net_policy_forgives(const struct net_policy *p, const struct net_rule *rule);

/* Names are found faster from now on, until the rules change.  Short lists are walked all the
 * same. */
void net_policy_index(struct net_policy *p);
void net_policy_unindex(struct net_policy *p);

/* The rule that decides, or NULL when the default does. */
const struct net_rule *net_policy_find_name(const struct net_policy *p, const char *name);
const struct net_rule *net_policy_find_address(const struct net_policy *p, bool v6,
					       const uint8_t bytes[16]);

/* An address, or a network whose host bits are zeroed. */
osb_must_check bool net_prefix_parse(struct view text, struct net_prefix *ret);
bool net_prefix_has(const struct net_prefix *p, bool v6, const uint8_t bytes[16]);
