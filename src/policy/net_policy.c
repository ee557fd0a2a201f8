/*
 * policy/net_policy.c - parses, merges and evaluates rules.  Lists are short enough to be walked.
 */
#include "policy/net_policy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/num.h"
#include "codec/json.h"
#include "codec/json_writer.h"

/* What JSON and people put around words. */
static struct view trim(struct view v)
{
	static const char blanks[] = " \t\r\n\v\f";

	while (v.len && v.p[0] && strchr(blanks, v.p[0]))
		v = view_skip(v, 1);
	while (v.len && v.p[v.len - 1] && strchr(blanks, v.p[v.len - 1]))
		v = view_first(v, v.len - 1);
	return v;
}

/* ---- targets ---- */

/* ::ffff:192.0.2.1 is another way to write 192.0.2.1, and packets to it are IPv4. */
static void unmap(struct net_prefix *p)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (!p->v6 || p->bits < 96 || memcmp(p->bytes, mapped, sizeof(mapped)) != 0)
		return;
	memmove(p->bytes, p->bytes + 12, 4);
	memset(p->bytes + 4, 0, 12);
	p->v6 = false;
	p->bits -= 96;
}

bool net_prefix_parse(struct view text, struct net_prefix *ret)
{
	struct view address = view_first(text, view_find(text, '/'));
	char copy[INET6_ADDRSTRLEN];
	uint32_t bits;

	*ret = (struct net_prefix){.v6 = view_has(address, ':')};
	if (address.len >= sizeof(copy) || view_has(address, '\0'))
		return false;
	memcpy(copy, address.p, address.len);
	copy[address.len] = '\0';
	if (inet_pton(ret->v6 ? AF_INET6 : AF_INET, copy, ret->bytes) != 1)
		return false;
	bits = ret->v6 ? 128 : 32;
	if (address.len < text.len) {
		uint32_t max = bits;

		if (!num_parse_u32(view_skip(text, address.len + 1), &bits) || bits > max)
			return false;
	}
	ret->bits = bits;
	for (unsigned i = bits; i < 128; i++)
		ret->bytes[i / 8] &= (uint8_t) ~(0x80u >> i % 8);
	return true;
}

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_' || c == '.';
}

static bool is_name(struct view v)
{
	for (size_t i = 0; i < v.len; i++)
		if (!is_name_char(v.p[i]) || (v.p[i] == '.' && (i == 0 || v.p[i - 1] == '.')))
			return false;
	return v.len > 0 && v.len <= 253 && v.p[v.len - 1] != '.';
}

/* The texts of one rule, in one piece; copies of the rule hold it together. */
struct net_text {
	size_t refs;
	char bytes[];
};

static char *put_lower(char *at, struct view v)
{
	for (size_t i = 0; i < v.len; i++)
		at[i] = v.p[i] >= 'A' && v.p[i] <= 'Z' ? (char)(v.p[i] + ('a' - 'A')) : v.p[i];
	at[v.len] = '\0';
	return at;
}

static void put_texts(struct net_rule *rule, struct view target, struct view name)
{
	struct net_text *text = mem_zero(1, sizeof(*text) + 2 * (target.len + 1) + name.len + 1);
	char *at = text->bytes;

	text->refs = 1;
	rule->text = text;
	rule->target = at;
	memcpy(at, target.p, target.len);
	at += target.len + 1;
	rule->key = put_lower(at, target);
	if (rule->kind != NET_ADDRESSES)
		rule->name = put_lower(at + target.len + 1, name);
}

/* False: it is nothing that a rule could be about. */
static bool read_target(struct view text, struct net_rule *rule)
{
	struct view name = text;

	text = name = trim(text);
	if (text.len > NET_TARGET_MAX)
		return false;
	if (net_prefix_parse(text, &rule->prefix)) {
		rule->kind = NET_ADDRESSES;
		unmap(&rule->prefix);
	} else {
		rule->kind = view_starts(text, VIEW("*.")) ? NET_BELOW : NET_HOST;
		if (rule->kind == NET_BELOW)
			name = view_skip(name, 2);
		if (view_ends(name, VIEW(".")))
			name = view_first(name, name.len - 1);
		if (!is_name(name))
			return false;
	}
	put_texts(rule, text, name);
	return true;
}

/* ---- rules ---- */

static void rule_done(struct net_rule *rule)
{
	if (rule->text && --rule->text->refs == 0)
		free(rule->text);
}

void net_policy_done(struct net_policy *p)
{
	for (size_t i = 0; i < p->n; i++)
		rule_done(&p->rules[i]);
	free(p->rules);
	net_policy_unindex(p);
	*p = NET_POLICY_NONE;
}

static void push(struct net_policy *p, const struct net_rule *rule)
{
	net_policy_unindex(p);
	/* Doubled at every power of two: the count itself says when. */
	if ((p->n & (p->n - 1)) == 0)
		p->rules = mem_resize(p->rules, p->n ? p->n * 2 : 1, sizeof(*p->rules));
	p->rules[p->n++] = *rule;
}

static int read_action(struct view text, bool *ret_allow)
{
	text = trim(text);
	if (view_iis(text, "allow"))
		*ret_allow = true;
	else if (view_iis(text, "deny") || text.len == 0)
		*ret_allow = false;
	else
		return -EINVAL;
	return 0;
}

static const char *const mode_names[] = {
	[NET_ENFORCE] = "enforce",
	[NET_LEARN] = "learn",
	[NET_DRY_RUN] = "dry-run",
};

static int read_mode(const struct json *v, enum net_mode *ret, struct err *e)
{
	struct view mode = VIEW_NONE;
	int r = json_field_string(v, "mode", &mode, e);

	mode = trim(mode);
	if (r < 0 || mode.len == 0)
		return r;
	for (size_t i = 0; i < ARRAY_LEN(mode_names); i++) {
		if (view_iis(mode, mode_names[i])) {
			*ret = (enum net_mode)i;
			return 0;
		}
	}
	return err_set(e, -EINVAL, "mode must be enforce, learn or dry-run, not '%.*s'",
		       (int)MIN(mode.len, (size_t)40), mode.p);
}

static int read_rule(const struct json *v, size_t i, struct net_rule *ret, struct err *e)
{
	struct view action = VIEW_NONE, target = VIEW_NONE;

	*ret = (struct net_rule){0};
	if (json_kind(v) != JSON_OBJECT)
		return err_set(e, -EINVAL, "rule %zu must be an object, not %s", i,
			       json_kind_name(json_kind(v)));
	if (json_field_string(v, "action", &action, e) < 0 ||
	    json_field_string(v, "target", &target, e) < 0)
		return err_ctx(e, "rule %zu", i);
	if (read_action(action, &ret->allow) < 0)
		return err_set(e, -EINVAL, "rule %zu: action must be allow or deny, not '%.*s'", i,
			       (int)MIN(action.len, (size_t)40), action.p);
	if (trim(target).len == 0)
		return err_set(e, -EINVAL, "rule %zu: target must not be empty", i);
	if (!read_target(target, ret))
		return err_set(e, -EINVAL,
			       "rule %zu: '%.*s' is no host name, *.domain, address or network", i,
			       (int)MIN(target.len, (size_t)80), target.p);
	return 0;
}

static int read_rules(const struct json *array, size_t max, struct net_policy *ret, struct err *e)
{
	size_t n = json_len(array);

	if (max && n > max)
		return err_set(e, -E2BIG, "%zu rules are too many, %zu are allowed", n, max);
	for (size_t i = 0; i < n; i++) {
		struct net_rule rule;
		int r = read_rule(json_at(array, i), i, &rule, e);

		if (r < 0)
			return r;
		push(ret, &rule);
	}
	return 0;
}

int net_policy_from_json(const struct json *v, size_t max, struct net_policy *ret, struct err *e)
{
	osb_cleanup(net_policy_done) struct net_policy p = NET_POLICY_NONE;
	const struct json *rules = NULL;
	struct view action = VIEW_NONE;
	int r = 0;

	if (v && json_kind(v) != JSON_NULL) {
		if (json_kind(v) != JSON_OBJECT)
			return err_set(e, -EINVAL, "the policy must be an object, not %s",
				       json_kind_name(json_kind(v)));
		r = json_field_string(v, "defaultAction", &action, e);
		if (r >= 0)
			r = json_field_array(v, "egress", &rules, e);
		if (r >= 0)
			r = read_mode(v, &p.mode, e);
	}
	if (r >= 0 && read_action(action, &p.default_allow) < 0)
		r = err_set(e, -EINVAL, "defaultAction must be allow or deny, not '%.*s'",
			    (int)MIN(action.len, (size_t)40), action.p);
	if (r >= 0 && rules)
		r = read_rules(rules, max, &p, e);
	if (r < 0)
		return r;
	*ret = p;
	p = NET_POLICY_NONE;
	return 0;
}

/* ---- changes ---- */

/* Moves those rules whose target was not seen yet. */
static void move_unseen(struct net_policy *to, struct net_policy *from, struct map *seen)
{
	for (size_t i = 0; i < from->n; i++) {
		struct net_rule *rule = &from->rules[i];

		if (map_get(seen, view_of(rule->key)))
			continue;
		map_put(seen, view_of(rule->key), rule->key);
		push(to, rule);
		*rule = (struct net_rule){0};
	}
}

int net_policy_merge(struct net_policy *p, const struct json *rules, size_t max, struct err *e)
{
	osb_cleanup(net_policy_done) struct net_policy incoming = NET_POLICY_NONE;
	struct net_policy merged = {.mode = p->mode, .default_allow = p->default_allow};
	osb_cleanup(map_freep) struct map *seen = map_new();
	size_t n = 0;
	/* Only what is left of them counts. */
	int r = read_rules(rules, 0, &incoming, e);

	if (r < 0)
		return r;
	move_unseen(&merged, &incoming, seen);
	for (size_t i = 0; i < p->n; i++)
		n += !map_get(seen, view_of(p->rules[i].key));
	if (max && merged.n + n > max) {
		net_policy_done(&merged);
		return err_set(e, -E2BIG, "%zu rules would be too many, %zu are allowed",
			       merged.n + n, max);
	}
	move_unseen(&merged, p, seen);
	net_policy_done(p);
	*p = merged;
	return 0;
}

static int read_keys(const struct json *targets, struct map *keys, struct err *e)
{
	for (size_t i = 0; i < json_len(targets); i++) {
		osb_cleanup(mem_freep) char *key = NULL;
		struct view target;

		if (!json_str(json_at(targets, i), &target))
			return err_set(e, -EINVAL, "target %zu must be a string", i);
		target = trim(target);
		key = put_lower(mem_alloc(target.len + 1), target);
		map_put(keys, view_of(key), keys);
	}
	return 0;
}

int net_policy_remove(struct net_policy *p, const struct json *targets, size_t *ret_n,
		      struct err *e)
{
	osb_cleanup(map_freep) struct map *keys = map_new();
	size_t kept = 0;
	int r = read_keys(targets, keys, e);

	if (r < 0)
		return r;
	for (size_t i = 0; i < p->n; i++) {
		if (map_get(keys, view_of(p->rules[i].key)))
			rule_done(&p->rules[i]);
		else
			p->rules[kept++] = p->rules[i];
	}
	*ret_n = p->n - kept;
	p->n = kept;
	net_policy_unindex(p);
	return 0;
}

void net_policy_add_lines(struct net_policy *p, struct view text, bool allow, size_t max,
			  size_t *ret_bad)
{
	struct view line;

	*ret_bad = 0;
	while (view_split(&text, '\n', &line)) {
		struct net_rule rule = {.allow = allow, .always = true};

		line = trim(view_first(line, view_find(line, '#')));
		if (line.len == 0)
			continue;
		if ((max && p->n >= max) || !read_target(line, &rule))
			++*ret_bad;
		else
			push(p, &rule);
	}
}

bool net_policy_add(struct net_policy *p, bool allow, struct view target)
{
	struct net_rule rule = {.allow = allow};

	if (!read_target(target, &rule))
		return false;
	push(p, &rule);
	return true;
}

void net_policy_append(struct net_policy *p, const struct net_policy *from)
{
	for (size_t i = 0; i < from->n; i++) {
		struct net_rule rule = from->rules[i];

		rule.text->refs++;
		push(p, &rule);
	}
}

/* ---- questions ---- */

const char *net_policy_mode(const struct net_policy *p)
{
	if (p->mode != NET_ENFORCE)
		return mode_names[p->mode];
	if (p->n > 0)
		return "enforcing";
	return p->default_allow ? "allow_all" : "deny_all";
}

bool net_policy_denies_names(const struct net_policy *p)
{
	if (!p->default_allow)
		return true;
	for (size_t i = 0; i < p->n; i++)
		if (!p->rules[i].allow && p->rules[i].kind != NET_ADDRESSES)
			return true;
	return false;
}

bool net_policy_forgives(const struct net_policy *p, const struct net_rule *rule)
{
	return p->mode != NET_ENFORCE && !(rule && rule->always);
}

void net_policy_write(const struct net_policy *p, struct json_writer *w)
{
	json_write_object(w);
	json_put_cstr(w, "defaultAction", p->default_allow ? "allow" : "deny");
	json_write_key(w, "egress");
	json_write_array(w);
	for (size_t i = 0; i < p->n; i++) {
		json_write_object(w);
		json_put_cstr(w, "action", p->rules[i].allow ? "allow" : "deny");
		json_put_cstr(w, "target", p->rules[i].target);
		json_write_object_end(w);
	}
	json_write_array_end(w);
	if (p->mode != NET_ENFORCE)
		json_put_cstr(w, "mode", mode_names[p->mode]);
	json_write_object_end(w);
}
