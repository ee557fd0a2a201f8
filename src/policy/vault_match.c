/*
 * policy/vault_match.c - which binding a request is given, and that there can be only one.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "policy/net_policy.h"
#include "policy/vault_int.h"

/* ---- hosts ---- */

static bool is_wild(const char *pattern)
{
	return pattern[0] == '*';
}

/* `name` is below the domain of `pattern`, which begins with "*.". */
static bool is_below(struct view name, const char *pattern)
{
	struct view suffix = view_of(pattern + 1);

	return name.len > suffix.len && view_ieq(view_skip(name, name.len - suffix.len), suffix);
}

static struct view without_dot(struct view host)
{
	return view_ends(host, VIEW(".")) ? view_first(host, host.len - 1) : host;
}

/* 2 = by its name, 1 = by a wildcard, 0 = not. */
static int host_rank(const struct strv *hosts, struct view host)
{
	int best = 0;

	host = without_dot(host);
	for (size_t i = 0; i < hosts->len; i++) {
		if (!is_wild(hosts->v[i]) && view_iis(host, hosts->v[i]))
			return 2;
		if (is_wild(hosts->v[i]) && is_below(host, hosts->v[i]))
			best = 1;
	}
	return best;
}

bool vault_hosts_have(const struct strv *hosts, struct view host)
{
	return host_rank(hosts, host) > 0;
}

bool vault_binds(const struct vault *v, struct view host)
{
	for (size_t i = 0; v && i < v->bindings_n; i++)
		if (host_rank(&v->bindings[i].hosts, host) > 0)
			return true;
	return false;
}

bool vault_binds_over(const struct vault *v, struct view host, bool https)
{
	for (size_t i = 0; v && i < v->bindings_n; i++) {
		const struct vault_binding *b = &v->bindings[i];

		if ((https ? b->https : b->http) && host_rank(&b->hosts, host) > 0)
			return true;
	}
	return false;
}

size_t vault_bindings(const struct vault *v)
{
	return v ? v->bindings_n : 0;
}

/* ---- paths ---- */

static bool is_dots(struct view segment)
{
	size_t dots = 0;

	while (segment.len) {
		size_t n = view_istarts(segment, VIEW("%2e")) ? 3 : segment.p[0] == '.' ? 1 : 0;

		if (n == 0)
			return false;
		segment = view_skip(segment, n);
		dots++;
	}
	return dots == 1 || dots == 2;
}

/* Separators, escapes of escapes, ends of strings, and bytes that are no text but were dots and
 * slashes to some. */
static bool is_slippery_escape(struct view at)
{
	static const char *const escapes[] = {"%2f", "%5c", "%25", "%00", "%c0", "%c1"};

	for (size_t i = 0; i < ARRAY_LEN(escapes); i++)
		if (view_istarts(at, view_of(escapes[i])))
			return true;
	return false;
}

/*
 * A path that a server may read as another one: with "." and ".." in it, or with escaped
 * separators.  It is nobody's but who has all paths.
 */
bool vault_path_slippery(struct view path)
{
	struct view segment, rest = path;

	while (view_split(&rest, '/', &segment)) {
		/* Servers of some kinds cut parameters off before they look at dots. */
		segment = view_first(segment, view_find(segment, ';'));
		if (is_dots(segment))
			return true;
	}
	for (size_t i = 0; i + 2 < path.len; i++)
		if (path.p[i] == '%' && is_slippery_escape(view_skip(path, i)))
			return true;
	return view_has(path, '\\');
}

static bool path_matches(const char *pattern, struct view path, bool slippery)
{
	struct view p = view_of(pattern);

	if (view_is(p, "/*"))
		return true;
	if (slippery)
		return false;
	if (view_ends(p, VIEW("*")))
		return view_starts(path, view_first(p, p.len - 1));
	return view_eq(path, p);
}

static bool paths_overlap(const char *a, const char *b)
{
	struct view x = view_of(a), y = view_of(b);
	bool open_x = view_ends(x, VIEW("*")), open_y = view_ends(y, VIEW("*"));

	if (open_x)
		x = view_first(x, x.len - 1);
	if (open_y)
		y = view_first(y, y.len - 1);
	if (open_x && open_y)
		return view_starts(x, y) || view_starts(y, x);
	if (open_x)
		return view_starts(y, x);
	if (open_y)
		return view_starts(x, y);
	return view_eq(x, y);
}

/* ---- requests ---- */

static int rank(const struct vault_binding *b, const struct vault_request *q, bool slippery)
{
	bool method = false, path = false;

	if (q->https ? !b->https : !b->http)
		return 0;
	for (size_t i = 0; i < b->methods.len && !method; i++)
		method = view_is(q->method, b->methods.v[i]);
	for (size_t i = 0; i < b->paths.len && !path; i++)
		path = path_matches(b->paths.v[i], q->path, slippery);
	return method && path ? host_rank(&b->hosts, q->host) : 0;
}

enum vault_verdict vault_match(const struct vault *v, const struct vault_request *q,
			       const struct vault_binding **ret)
{
	bool slippery = vault_path_slippery(q->path), twice = false;
	int best = 0;

	for (size_t i = 0; v && i < v->bindings_n; i++) {
		int r = rank(&v->bindings[i], q, slippery);

		if (r == 0 || r < best)
			continue;
		twice = r == best;
		best = r;
		*ret = &v->bindings[i];
	}
	if (best == 0)
		return VAULT_UNBOUND;
	return twice ? VAULT_AMBIGUOUS : VAULT_BOUND;
}

const char *vault_binding_name(const struct vault_binding *b)
{
	return b->name;
}

/* ---- bindings beside each other ---- */

static bool hosts_overlap(const struct strv *a, const struct strv *b)
{
	for (size_t i = 0; i < a->len; i++)
		for (size_t k = 0; k < b->len; k++) {
			const char *x = a->v[i], *y = b->v[k];

			if (is_wild(x) != is_wild(y))
				continue;
			if (strcmp(x, y) == 0 || (is_wild(x) && (is_below(view_of(x + 2), y) ||
								 is_below(view_of(y + 2), x))))
				return true;
		}
	return false;
}

static bool lists_meet(const struct strv *a, const struct strv *b,
		       bool (*meet)(const char *, const char *))
{
	for (size_t i = 0; i < a->len; i++)
		for (size_t k = 0; k < b->len; k++)
			if (meet(a->v[i], b->v[k]))
				return true;
	return false;
}

static bool same(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

static bool may_meet(const struct vault_binding *a, const struct vault_binding *b)
{
	return ((a->http && b->http) || (a->https && b->https)) &&
	       hosts_overlap(&a->hosts, &b->hosts) && lists_meet(&a->methods, &b->methods, same) &&
	       lists_meet(&a->paths, &b->paths, paths_overlap);
}

int vault_check_ambiguity(const struct vault *v, struct err *e)
{
	size_t hosts = 0, paths = 0;

	for (size_t i = 0; i < v->bindings_n; i++) {
		hosts += v->bindings[i].hosts.len;
		paths += v->bindings[i].paths.len;
	}
	if (hosts > VAULT_PATTERNS_MAX || paths > VAULT_PATTERNS_MAX)
		return err_set(e, -EINVAL, "more than %d hosts or paths in all bindings",
			       VAULT_PATTERNS_MAX);
	for (size_t i = 0; i < v->bindings_n; i++)
		for (size_t k = i + 1; k < v->bindings_n; k++)
			if (may_meet(&v->bindings[i], &v->bindings[k]))
				return err_set(e, -EINVAL,
					       "bindings \"%.64s\" and \"%.64s\" can match the "
					       "same request",
					       v->bindings[i].name, v->bindings[k].name);
	return 0;
}

/* ---- bindings and the policy ---- */

/* An allow rule that speaks of this host or wildcard, whatever comes before it. */
static bool rule_names(const struct net_rule *r, const char *host)
{
	struct view name = view_of(is_wild(host) ? host + 2 : host);

	if (!r->allow || r->kind == NET_ADDRESSES)
		return false;
	if (r->kind == NET_HOST)
		return !is_wild(host) && view_is(name, r->name);
	/* Below r->name: all of it, or a part of it. */
	if (is_wild(host) && view_is(name, r->name))
		return true;
	return name.len > strlen(r->name) + 1 && view_ends(name, view_of(r->name)) &&
	       name.p[name.len - strlen(r->name) - 1] == '.';
}

static bool is_covered(const struct net_policy *policy, const char *host)
{
	const struct net_rule *first;
	bool named = false;
	char probe[300];
	int n;

	for (size_t i = 0; i < policy->n && !named; i++)
		named = rule_names(&policy->rules[i], host);
	if (!named)
		return false;
	/* What a rule before it denies is denied. */
	n = snprintf(probe, sizeof(probe), "%s%s", is_wild(host) ? "probe." : "",
		     is_wild(host) ? host + 2 : host);
	if (n < 0 || (size_t)n >= sizeof(probe))
		return false;
	first = net_policy_find_name(policy, probe);
	return first && first->allow;
}

int vault_accepts(const struct vault *v, const struct net_policy *policy, struct err *e)
{
	if (!v || v->bindings_n == 0)
		return 0;
	if (policy->n == 0)
		return err_set(e, -EINVAL,
			       "credential bindings require explicit networkPolicy.egress allow "
			       "rules");
	for (size_t i = 0; i < v->bindings_n; i++)
		for (size_t k = 0; k < v->bindings[i].hosts.len; k++)
			if (!is_covered(policy, v->bindings[i].hosts.v[k]))
				return err_set(e, -EINVAL,
					       "binding \"%.64s\" host \"%.100s\" is not covered "
					       "by an explicit allow egress rule",
					       v->bindings[i].name, v->bindings[i].hosts.v[k]);
	return 0;
}
