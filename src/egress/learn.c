/*
 * egress/learn.c - names and addresses in two maps, and the policy that is made of them.
 */
#include "egress/learn.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/view.h"
#include "policy/net_policy.h"

#define NAMES_MAX     4096
#define NAMES_BYTES   (256u << 10)
#define ADDRESSES_MAX 1024
#define ADDRESS_BYTES 17 /* the family, then the address */

struct learn {
	struct map *names;
	struct map *addresses;
	size_t bytes; /* of names */
	uint64_t since_ns;
	bool incomplete;
};

struct learn *learn_new(void)
{
	struct learn *l = mem_new(struct learn);

	l->names = map_new();
	l->addresses = map_new();
	l->since_ns = clock_wall_ns();
	return l;
}

void learn_free(struct learn *l)
{
	if (!l)
		return;
	map_free(l->names);
	map_free(l->addresses);
	free(l);
}

void learn_name(struct learn *l, const char *name)
{
	struct view key = view_of(name);

	if (map_get(l->names, key))
		return;
	if (map_len(l->names) >= NAMES_MAX || l->bytes + key.len > NAMES_BYTES) {
		l->incomplete = true;
		return;
	}
	map_put(l->names, key, l);
	l->bytes += key.len;
}

void learn_address(struct learn *l, bool v6, const uint8_t bytes[16])
{
	char key[ADDRESS_BYTES] = {(char)v6};

	memcpy(key + 1, bytes, v6 ? 16 : 4);
	if (map_get(l->addresses, view_mem(key, sizeof(key))))
		return;
	if (map_len(l->addresses) >= ADDRESSES_MAX)
		l->incomplete = true;
	else
		map_put(l->addresses, view_mem(key, sizeof(key)), l);
}

uint64_t learn_since_ns(const struct learn *l)
{
	return l->since_ns;
}

size_t learn_names(const struct learn *l)
{
	return map_len(l->names);
}

size_t learn_addresses(const struct learn *l)
{
	return map_len(l->addresses);
}

bool learn_is_complete(const struct learn *l)
{
	return !l->incomplete;
}

/* ---- wildcards ---- */

/* Where anybody can have a name: what is below them has many owners. */
static const char *const hosters[] = {
	"amazonaws.com",
	"appspot.com",
	"azureedge.net",
	"azurewebsites.net",
	"blogspot.com",
	"cloudapp.azure.com",
	"cloudfront.net",
	"core.windows.net",
	"firebaseapp.com",
	"fly.dev",
	"github.io",
	"githubpreview.dev",
	"gitlab.io",
	"googleusercontent.com",
	"herokuapp.com",
	"netlify.app",
	"ngrok-free.app",
	"ngrok.io",
	"on.aws",
	"onrender.com",
	"pages.dev",
	"r2.dev",
	"readthedocs.io",
	"run.app",
	"storage.googleapis.com",
	"trycloudflare.com",
	"vercel.app",
	"web.app",
	"workers.dev",
};

/* Under country codes: "co.uk" is what "com" is elsewhere. */
static const char *const seconds[] = {
	"ac", "co", "com", "edu", "go", "gob", "gov", "mil", "ne", "net", "nom", "or", "org",
};

static struct view parent_of(struct view name)
{
	size_t dot = view_find(name, '.');

	return dot < name.len ? view_skip(name, dot + 1) : VIEW_NONE;
}

static bool is_or_is_below(struct view name, struct view domain)
{
	return view_ends(name, domain) &&
	       (name.len == domain.len || name.p[name.len - domain.len - 1] == '.');
}

/* Has a domain one owner, as far as its name tells? */
static bool has_one_owner(struct view domain)
{
	struct view top = parent_of(domain);

	if (top.len == 0)
		return false;
	if (top.len == 2)
		for (size_t i = 0; i < ARRAY_LEN(seconds); i++)
			if (view_is(view_first(domain, domain.len - 3), seconds[i]))
				return false;
	for (size_t i = 0; i < ARRAY_LEN(hosters); i++)
		if (is_or_is_below(domain, view_of(hosters[i])))
			return false;
	return true;
}

/* ---- the policy ---- */

struct targets {
	struct view *v; /* of names: views of the map's keys */
	size_t n;
};

static int by_parent(const void *a, const void *b)
{
	struct view x = parent_of(*(const struct view *)a), y = parent_of(*(const struct view *)b);
	int r = memcmp(x.len ? x.p : "", y.len ? y.p : "", MIN(x.len, y.len));

	return r ? r : (x.len > y.len) - (x.len < y.len);
}

static int by_text(const void *a, const void *b)
{
	struct view x = *(const struct view *)a, y = *(const struct view *)b;
	int r = memcmp(x.p, y.p, MIN(x.len, y.len));

	return r ? r : (x.len > y.len) - (x.len < y.len);
}

static struct targets sorted(const struct map *m, int (*order)(const void *a, const void *b))
{
	struct targets t = {.v = mem_new_array(struct view, map_len(m) + 1)};
	size_t pos = 0;
	void *value;

	while (map_next(m, &pos, &t.v[t.n], &value))
		t.n++;
	qsort(t.v, t.n, sizeof(*t.v), order);
	return t;
}

/* The domains that have `many` names or more. */
static struct targets find_wide(const struct map *names, size_t many)
{
	struct targets all = sorted(names, by_parent);
	struct targets wide = {.v = mem_new_array(struct view, all.n + 1)};

	for (size_t i = 0, end; many && i < all.n; i = end) {
		for (end = i + 1; end < all.n && by_parent(&all.v[i], &all.v[end]) == 0;)
			end++;
		if (end - i >= many && has_one_owner(parent_of(all.v[i])))
			wide.v[wide.n++] = parent_of(all.v[i]);
	}
	free(all.v);
	return wide;
}

static bool is_covered(const struct targets *wide, struct view name)
{
	for (size_t i = 0; i < wide->n; i++)
		if (name.len > wide->v[i].len && is_or_is_below(name, wide->v[i]))
			return true;
	return false;
}

static void allow_name(struct net_policy *p, struct view name, bool below)
{
	char text[NET_TARGET_MAX + 1];
	int n = snprintf(text, sizeof(text), "%s" VIEW_FMT, below ? "*." : "", VIEW_ARG(name));

	/* A name that no rule can be about cannot be allowed. */
	if (n > 0 && n < (int)sizeof(text))
		net_policy_add(p, true, view_mem(text, (size_t)n));
}

static void allow_names(struct net_policy *p, const struct map *names, size_t many)
{
	struct targets wide = find_wide(names, many), all = sorted(names, by_text);

	for (size_t i = 0; i < wide.n; i++)
		if (!is_covered(&wide, wide.v[i]))
			allow_name(p, wide.v[i], true);
	for (size_t i = 0; i < all.n; i++)
		if (!is_covered(&wide, all.v[i]))
			allow_name(p, all.v[i], false);
	free(wide.v);
	free(all.v);
}

static void allow_addresses(struct net_policy *p, const struct map *addresses)
{
	struct targets all = sorted(addresses, by_text);

	for (size_t i = 0; i < all.n; i++) {
		int family = all.v[i].p[0] ? AF_INET6 : AF_INET;
		char text[INET6_ADDRSTRLEN];

		if (inet_ntop(family, all.v[i].p + 1, text, sizeof(text)))
			net_policy_add(p, true, view_of(text));
	}
	free(all.v);
}

void learn_suggest(const struct learn *l, size_t many, struct net_policy *ret)
{
	*ret = NET_POLICY_NONE;
	allow_names(ret, l->names, many);
	allow_addresses(ret, l->addresses);
}
