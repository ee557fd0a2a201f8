/*
 * egress/ranges.c - sort, join, invert; addresses are compared as big-endian numbers.
 */
#include "egress/ranges.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/mem.h"
#include "policy/net_policy.h"

static size_t width(bool v6)
{
	return v6 ? 16 : 4;
}

void ranges_done(struct ranges *r)
{
	free(r->v);
	*r = RANGES_NONE;
}

static struct nfset_element *append(struct ranges *r)
{
	if (r->n == r->cap) {
		r->cap = r->cap ? r->cap * 2 : 16;
		r->v = mem_resize(r->v, r->cap, sizeof(*r->v));
	}
	r->v[r->n] = (struct nfset_element){0};
	return &r->v[r->n++];
}

void ranges_add(struct ranges *r, const struct net_prefix *p)
{
	struct nfset_element *x = append(r);

	x->v6 = p->v6;
	memcpy(x->first, p->bytes, width(p->v6));
	memcpy(x->last, p->bytes, width(p->v6));
	for (size_t i = p->bits; i < width(p->v6) * 8; i++)
		x->last[i / 8] |= (uint8_t)(0x80u >> i % 8);
}

void ranges_add_all(struct ranges *r)
{
	ranges_add(r, &(struct net_prefix){.v6 = false});
	ranges_add(r, &(struct net_prefix){.v6 = true});
}

static int compare(const void *a, const void *b)
{
	const struct nfset_element *x = a, *y = b;

	if (x->v6 != y->v6)
		return x->v6 ? 1 : -1;
	return memcmp(x->first, y->first, sizeof(x->first));
}

/* One more, or false when there is no more. */
static bool step_up(uint8_t *bytes, size_t n)
{
	while (n-- > 0)
		if (++bytes[n] != 0)
			return true;
	return false;
}

static void step_down(uint8_t *bytes, size_t n)
{
	while (n-- > 0)
		if (bytes[n]-- != 0)
			return;
}

/* `y` begins no earlier than `x`: does it begin within it, or right behind? */
static bool continues(const struct nfset_element *x, const struct nfset_element *y)
{
	uint8_t next[16];

	if (x->v6 != y->v6)
		return false;
	memcpy(next, x->last, sizeof(next));
	if (!step_up(next, width(x->v6)))
		return true;
	return memcmp(y->first, next, sizeof(next)) <= 0;
}

void ranges_join(struct ranges *r)
{
	size_t kept = 0;

	if (r->n < 2)
		return;
	qsort(r->v, r->n, sizeof(*r->v), compare);
	for (size_t i = 1; i < r->n; i++) {
		struct nfset_element *x = &r->v[kept], *y = &r->v[i];

		if (!continues(x, y))
			r->v[++kept] = *y;
		else if (memcmp(y->last, x->last, sizeof(x->last)) > 0)
			memcpy(x->last, y->last, sizeof(x->last));
	}
	r->n = kept + 1;
}

static void invert_family(const struct ranges *r, bool v6, struct ranges *ret)
{
	struct nfset_element gap = {.v6 = v6};
	bool more = true;

	for (size_t i = 0; i < r->n; i++) {
		const struct nfset_element *x = &r->v[i];

		if (x->v6 != v6)
			continue;
		if (memcmp(x->first, gap.first, sizeof(gap.first)) > 0) {
			memcpy(gap.last, x->first, sizeof(gap.last));
			step_down(gap.last, width(v6));
			*append(ret) = gap;
		}
		memcpy(gap.first, x->last, sizeof(gap.first));
		more = step_up(gap.first, width(v6));
	}
	if (more) {
		memset(gap.last, 0, sizeof(gap.last));
		memset(gap.last, 0xff, width(v6));
		*append(ret) = gap;
	}
}

void ranges_invert(const struct ranges *r, struct ranges *ret)
{
	invert_family(r, false, ret);
	invert_family(r, true, ret);
}

bool ranges_have(const struct ranges *r, bool v6, const uint8_t bytes[16])
{
	size_t low = 0, high = r->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct nfset_element *x = &r->v[middle];
		int order = x->v6 != v6 ? (x->v6 ? 1 : -1) : 0;

		if (order == 0 && memcmp(bytes, x->first, width(v6)) < 0)
			order = 1;
		else if (order == 0 && memcmp(bytes, x->last, width(v6)) > 0)
			order = -1;
		if (order == 0)
			return true;
		if (order > 0)
			high = middle;
		else
			low = middle + 1;
	}
	return false;
}
