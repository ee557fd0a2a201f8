/*
 * warden/idranges.c - a bitmap that is searched from where the last search ended, so that a range
 * rests as long as possible before it is used again.
 */
#include "warden/idranges.h"

#include <errno.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rand.h"

/* Well above the ids that distributions hand out (subordinate ids included) and below 2^31. */
#define FIRST_ID  UINT32_C(0x40000000)
#define RANGES_N  16384u
#define WORD_BITS 64u

struct idranges {
	uint64_t used[RANGES_N / WORD_BITS];
	uint32_t next;
};

struct idranges *idranges_new(void)
{
	struct idranges *r = mem_new(struct idranges);

	/* Anywhere: what an earlier warden gave away last may still be on its way out. */
	rand_bytes(&r->next, sizeof(r->next));
	r->next %= RANGES_N;
	return r;
}

void idranges_free(struct idranges *r)
{
	free(r);
}

static bool is_used(const struct idranges *r, uint32_t i)
{
	return r->used[i / WORD_BITS] >> i % WORD_BITS & 1;
}

int idranges_take(struct idranges *r, uint32_t *ret_index, struct err *e)
{
	for (uint32_t n = 0; n < RANGES_N; n++) {
		uint32_t i = (r->next + n) % RANGES_N;

		if (is_used(r, i))
			continue;
		r->used[i / WORD_BITS] |= UINT64_C(1) << i % WORD_BITS;
		r->next = i + 1;
		*ret_index = i;
		return 0;
	}
	return err_set(e, -EAGAIN, "all %u ranges of user ids are in use", RANGES_N);
}

int idranges_claim(struct idranges *r, uint32_t index, struct err *e)
{
	if (index >= RANGES_N)
		return err_set(e, -EINVAL, "no range of user ids has the number %u", index);
	if (is_used(r, index))
		return err_set(e, -EEXIST, "range %u of user ids is in use", index);
	r->used[index / WORD_BITS] |= UINT64_C(1) << index % WORD_BITS;
	return 0;
}

void idranges_release(struct idranges *r, uint32_t index)
{
	if (index < RANGES_N)
		r->used[index / WORD_BITS] &= ~(UINT64_C(1) << index % WORD_BITS);
}

uint32_t idranges_base(uint32_t index)
{
	return FIRST_ID + index * IDRANGES_SIZE;
}
