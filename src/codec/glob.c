/*
 * codec/glob.c - a backtracking matcher with a budget.
 *
 * What follows a group is kept as a chain of rests on the stack, so alternatives are matched in
 * place: nothing is expanded, nothing allocated.
 */
#include "codec/glob.h"

#include <stdint.h>

#include "base/utf8.h"

#define MAX_STEPS 32768

/* A pattern, and what comes behind it. */
struct rest {
	struct view pattern;
	const struct rest *then;
};

/*
 * Why there was no match decides how much is left to try.  A star that tried every place says so:
 * an earlier star that moves on would only offer it fewer places.
 */
enum outcome {
	NO,	 /* not here */
	NO_STAR, /* nor from any later place of this segment */
	NO_PATH, /* nor from any later place at all */
	YES,
};

struct matcher {
	struct view name;
	unsigned steps;
};

/* Length of the character at the front of a non-empty text; its value, or the byte as 0x110000 + b.
 */
static size_t next_char(struct view v, uint32_t *ret)
{
	int n = utf8_next(v, ret);

	if (n > 0)
		return (size_t)n;
	*ret = 0x110000 + (unsigned char)v.p[0];
	return 1;
}

/* One character of a class, escapes resolved; false at its end or when it is broken off. */
static bool class_char(struct view *v, uint32_t *ret)
{
	if (v->len > 0 && v->p[0] == '\\')
		*v = view_skip(*v, 1);
	if (v->len == 0)
		return false;
	*v = view_skip(*v, next_char(*v, ret));
	return true;
}

/*
 * Reads the class behind its '[' and tells whether `c` is in it.  *v is advanced behind the ']'.
 * -1 when it never ends.  A ']' right at the front is an ordinary character.
 */
static int class_match(struct view *v, uint32_t c)
{
	bool negated = v->len > 0 && (v->p[0] == '!' || v->p[0] == '^');
	bool hit = false, first = true;
	uint32_t from, to;

	if (negated)
		*v = view_skip(*v, 1);
	for (;; first = false) {
		if (v->len == 0)
			return -1;
		if (v->p[0] == ']' && !first)
			break;
		if (!class_char(v, &from))
			return -1;
		to = from;
		if (v->len > 1 && v->p[0] == '-' && v->p[1] != ']') {
			*v = view_skip(*v, 1);
			if (!class_char(v, &to))
				return -1;
		}
		hit |= c >= from && c <= to;
	}
	*v = view_skip(*v, 1);
	return hit != negated;
}

static bool opens_negation(struct view v)
{
	return v.len > 1 && v.p[0] == '!' && v.p[1] == '(';
}

/* Steps over one element of a pattern: a character, an escape, a class or a whole group. */
static bool skip_element(struct view *v, unsigned nesting);

/* Steps over elements up to one of the two bytes of `stops`; false when neither comes. */
static bool skip_until(struct view *v, const char *stops, unsigned nesting)
{
	while (v->len > 0 && v->p[0] != stops[0] && v->p[0] != stops[1])
		if (!skip_element(v, nesting))
			return false;
	return v->len > 0;
}

static bool skip_group(struct view *v, const char *stops, unsigned nesting)
{
	if (nesting == 0)
		return false;
	do {
		if (!skip_until(v, stops, nesting - 1))
			return false;
		*v = view_skip(*v, 1);
	} while (v->p[-1] == stops[0]);
	return true;
}

static bool skip_element(struct view *v, unsigned nesting)
{
	struct view at = *v;

	*v = view_skip(at, 1);
	if (at.p[0] == '\\') {
		*v = view_skip(at, 2);
		return at.len > 1;
	}
	if (at.p[0] == '[')
		return class_match(v, 0) >= 0;
	if (at.p[0] == '{')
		return skip_group(v, ",}", nesting);
	if (opens_negation(at)) {
		*v = view_skip(at, 2);
		return skip_group(v, "|)", nesting);
	}
	return true;
}

bool glob_valid(struct view pattern)
{
	if (pattern.len > GLOB_MAX_BYTES)
		return false;
	while (pattern.len > 0)
		if (!skip_element(&pattern, GLOB_MAX_NESTING))
			return false;
	return true;
}

static enum outcome match(struct matcher *m, const struct rest *r, size_t at);

/* Long groups and classes cost more than a character. */
static void spend(struct matcher *m, size_t pattern_bytes)
{
	unsigned cost = 1 + (unsigned)pattern_bytes / 16;

	m->steps -= cost < m->steps ? cost : m->steps;
}

/* '*': every place of this segment, the nearest first. */
static enum outcome match_star(struct matcher *m, const struct rest *r, size_t at)
{
	for (;; at++) {
		enum outcome got = match(m, r, at);

		if (got != NO)
			return got;
		if (at == m->name.len || m->name.p[at] == '/')
			return NO_STAR;
	}
}

/* A '**' segment: here, and behind every '/' that follows. */
static enum outcome match_path(struct matcher *m, const struct rest *r, size_t at)
{
	bool last = r->pattern.len == 0;
	/* With "/" behind it, the pattern goes on at the next segment. */
	struct rest next = {view_skip(r->pattern, 1), r->then};

	if (last)
		return YES;
	for (;;) {
		enum outcome got = match(m, &next, at);

		if (got == YES || got == NO_PATH)
			return got;
		at += view_find(view_skip(m->name, at), '/');
		if (at == m->name.len)
			return NO_PATH;
		at++;
	}
}

/* {a,b}: the first alternative that lets the whole match. */
static enum outcome match_braces(struct matcher *m, struct view group, const struct rest *then,
				 size_t at)
{
	enum outcome worst = NO_PATH;

	for (;;) {
		struct view end = group;
		struct rest r = {.then = then};
		enum outcome got;

		if (!skip_until(&end, ",}", GLOB_MAX_NESTING))
			return NO;
		r.pattern = view_first(group, (size_t)(end.p - group.p));
		got = match(m, &r, at);
		if (got == YES)
			return YES;
		worst = got < worst ? got : worst;
		if (end.p[0] == '}')
			return worst;
		group = view_skip(end, 1);
	}
}

/* Does any alternative of "a|b)" match all of name[from..to)? */
static bool any_matches(struct matcher *m, struct view group, size_t from, size_t to)
{
	struct view whole = m->name;
	enum outcome got = NO;

	m->name = view_first(whole, to);
	for (;;) {
		struct view end = group;
		struct rest r = {0};

		if (!skip_until(&end, "|)", GLOB_MAX_NESTING))
			break;
		r.pattern = view_first(group, (size_t)(end.p - group.p));
		got = match(m, &r, from);
		if (got == YES || end.p[0] == ')')
			break;
		group = view_skip(end, 1);
	}
	m->name = whole;
	/* Out of steps: nobody knows, so it must not become a match by negation. */
	return got == YES || m->steps == 0;
}

/* !(a|b): as much of the segment as none of the alternatives matches. */
static enum outcome match_negation(struct matcher *m, struct view group, const struct rest *then,
				   size_t at)
{
	for (size_t to = at;; to++) {
		if (!any_matches(m, group, at, to)) {
			enum outcome got = match(m, then, to);

			if (got == YES)
				return YES;
			if (got != NO)
				return NO;
		}
		if (m->steps == 0 || to == m->name.len || m->name.p[to] == '/')
			return NO;
	}
}

/* One or more stars at the front of the pattern. */
static enum outcome match_stars(struct matcher *m, struct rest r, size_t at)
{
	bool segment_start = at == 0 || m->name.p[at - 1] == '/';
	size_t stars = 0;

	while (stars < r.pattern.len && r.pattern.p[stars] == '*')
		stars++;
	r.pattern = view_skip(r.pattern, stars);
	while (r.pattern.len == 0 && r.then)
		r = *r.then;
	if (stars > 1 && segment_start && (r.pattern.len == 0 || r.pattern.p[0] == '/'))
		return match_path(m, &r, at);
	return match_star(m, &r, at);
}

/* '?', a class, or a character that stands for itself; false when it does not fit. */
static bool match_one(struct matcher *m, struct view *pattern, size_t *at)
{
	struct view name = view_skip(m->name, *at);
	uint32_t c;
	size_t n;

	if (name.len == 0)
		return false;
	n = next_char(name, &c);
	if (pattern->p[0] == '?' || pattern->p[0] == '[') {
		bool any = pattern->p[0] == '?';

		*pattern = view_skip(*pattern, 1);
		*at += n;
		return c != '/' && (any || class_match(pattern, c) == 1);
	}
	if (pattern->p[0] == '\\')
		*pattern = view_skip(*pattern, 1);
	if (pattern->len == 0 || pattern->p[0] != name.p[0])
		return false;
	*pattern = view_skip(*pattern, 1);
	*at += 1;
	return true;
}

/* "a/(star)(star)" also names "a" itself. */
static bool only_path_left(const struct rest *r)
{
	return !r->then && view_is(r->pattern, "/**");
}

static enum outcome match(struct matcher *m, const struct rest *r, size_t at)
{
	struct rest now = *r;

	for (;;) {
		struct view group = now.pattern;

		if (m->steps == 0)
			return NO_PATH;
		spend(m, 0);
		if (now.pattern.len == 0) {
			if (!now.then)
				return at == m->name.len ? YES : NO;
			now = *now.then;
			continue;
		}
		if (at == m->name.len && only_path_left(&now))
			return YES;
		if (now.pattern.p[0] == '*')
			return match_stars(m, now, at);
		if (now.pattern.p[0] == '{' || opens_negation(now.pattern)) {
			bool braces = now.pattern.p[0] == '{';

			if (!skip_element(&now.pattern, GLOB_MAX_NESTING))
				return NO;
			spend(m, group.len - now.pattern.len);
			return braces ? match_braces(m, view_skip(group, 1), &now, at)
				      : match_negation(m, view_skip(group, 2), &now, at);
		}
		if (!match_one(m, &now.pattern, &at))
			return NO;
		if (group.p[0] == '[')
			spend(m, group.len - now.pattern.len);
	}
}

bool glob_match(struct view pattern, struct view name)
{
	struct matcher m = {.name = name, .steps = MAX_STEPS};
	struct rest all = {.pattern = pattern};

	return glob_valid(pattern) && match(&m, &all, 0) == YES;
}
