/*
 * server/page.c - pages of lists.
 */
#include "server/page.h"

#include "base/num.h"
#include "codec/json_writer.h"
#include "server/failure.h"
#include "server/request_fields.h"

static int read_number(const char *name, struct view text, uint64_t max, uint64_t *ret,
		       struct failure *f)
{
	if (num_parse_u64(text, ret) && *ret >= 1 && *ret <= max)
		return 1;
	return failure_set(f, 422, REQUEST_CODE, "%s must be a whole number from 1 to %llu", name,
			   (unsigned long long)max);
}

int page_parameter(struct page *p, struct view name, struct view value, struct failure *f)
{
	if (view_is(name, "page"))
		return read_number("page", value, UINT32_MAX, &p->number, f);
	if (view_is(name, "pageSize"))
		return read_number("pageSize", value, PAGE_SIZE_MAX, &p->size, f);
	return 0;
}

bool page_holds(const struct page *p, uint64_t index)
{
	uint64_t first = (p->number - 1) * p->size;

	return index >= first && index - first < p->size;
}

void page_write(struct json_writer *w, const struct page *p, uint64_t total)
{
	uint64_t pages = (total + p->size - 1) / MAX(p->size, UINT64_C(1));

	json_write_key(w, "pagination");
	json_write_object(w);
	json_put_int(w, "page", (int64_t)p->number);
	json_put_int(w, "pageSize", (int64_t)p->size);
	json_put_int(w, "totalItems", (int64_t)total);
	json_put_int(w, "totalPages", (int64_t)pages);
	json_put_bool(w, "hasNextPage", p->number < pages);
	json_write_object_end(w);
}
