/*
 * policy/net_policy_find.c - which rule decides.
 *
 * Short lists are walked.  For long ones there is a table from names to the first rules that have
 * them: a question then costs one look for each of its labels, however long the list.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rand.h"
#include "base/view.h"
#include "policy/net_policy.h"

#define WALKED_MAX 32 /* rules */

struct net_index {
	uint64_t seed; /* so that nobody can write lists whose names collide */
	size_t mask;
	uint32_t slots[]; /* number of a rule + 1; 0 = free */
};

/* ---- addresses ---- */

bool net_prefix_has(const struct net_prefix *p, bool v6, const uint8_t bytes[16])
{
	unsigned whole = p->bits / 8, rest = p->bits % 8;

	if (p->v6 != v6 || memcmp(p->bytes, bytes, whole) != 0)
		return false;
	return rest == 0 || (p->bytes[whole] ^ bytes[whole]) >> (8 - rest) == 0;
}

const struct net_rule *net_policy_find_address(const struct net_policy *p, bool v6,
					       const uint8_t bytes[16])
{
	for (size_t i = 0; i < p->n; i++)
		if (p->rules[i].kind == NET_ADDRESSES &&
		    net_prefix_has(&p->rules[i].prefix, v6, bytes))
			return &p->rules[i];
	return NULL;
}

/* ---- names ---- */

static size_t hash(const struct net_index *x, enum net_target_kind kind, struct view name)
{
	uint64_t h = x->seed + (uint64_t)kind;

	for (size_t i = 0; i < name.len; i++)
		h = (h ^ (unsigned char)name.p[i]) * UINT64_C(0x9e3779b97f4a7c15) + (h >> 29);
	return (size_t)(h ^ h >> 32);
}

/* Where the rule is, or would be put. */
static uint32_t *find_slot(const struct net_policy *p, enum net_target_kind kind, struct view name)
{
	struct net_index *x = p->index;

	for (size_t i = hash(x, kind, name);; i++) {
		uint32_t *slot = &x->slots[i & x->mask];
		const struct net_rule *rule = *slot ? &p->rules[*slot - 1] : NULL;

		if (!rule || (rule->kind == kind && view_is(name, rule->name)))
			return slot;
	}
}

void net_policy_index(struct net_policy *p)
{
	size_t slots = 64;

	net_policy_unindex(p);
	if (p->n <= WALKED_MAX || p->n >= UINT32_MAX)
		return;
	while (slots < p->n * 2)
		slots *= 2;
	p->index = mem_zero(1, sizeof(*p->index) + slots * sizeof(p->index->slots[0]));
	rand_bytes(&p->index->seed, sizeof(p->index->seed));
	p->index->mask = slots - 1;
	for (size_t i = 0; i < p->n; i++) {
		uint32_t *slot;

		if (p->rules[i].kind == NET_ADDRESSES)
			continue;
		slot = find_slot(p, p->rules[i].kind, view_of(p->rules[i].name));
		if (!*slot)
			*slot = (uint32_t)i + 1;
	}
}

void net_policy_unindex(struct net_policy *p)
{
	free(p->index);
	p->index = NULL;
}

/* The first of those that match: its number + 1, or 0. */
static uint32_t look_up(const struct net_policy *p, struct view name)
{
	uint32_t first = *find_slot(p, NET_HOST, name);
	struct view domain = name;

	for (size_t dot; (dot = view_find(domain, '.')) < domain.len;) {
		uint32_t found = 0;

		domain = view_skip(domain, dot + 1);
		/* "*." wants something in front of the dot. */
		if (name.len > domain.len + 1)
			found = *find_slot(p, NET_BELOW, domain);
		if (found && (!first || found < first))
			first = found;
	}
	return first;
}

static bool is_below(struct view name, struct view domain)
{
	return name.len > domain.len + 1 && view_ends(name, domain) &&
	       name.p[name.len - domain.len - 1] == '.';
}

static const struct net_rule *walk(const struct net_policy *p, struct view name)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct net_rule *rule = &p->rules[i];

		if (rule->kind == NET_HOST && view_is(name, rule->name))
			return rule;
		if (rule->kind == NET_BELOW && is_below(name, view_of(rule->name)))
			return rule;
	}
	return NULL;
}

const struct net_rule *net_policy_find_name(const struct net_policy *p, const char *name)
{
	struct view asked = view_of(name);
	uint32_t found;

	if (view_ends(asked, VIEW(".")))
		asked = view_first(asked, asked.len - 1);
	if (!p->index)
		return walk(p, asked);
	found = look_up(p, asked);
	return found ? &p->rules[found - 1] : NULL;
}
