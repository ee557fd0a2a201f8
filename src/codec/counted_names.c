/*
 * codec/counted_names.c - see counted_names.h.
 */
#include "codec/counted_names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"

#define NUMBER_MAX 1000000

static bool is_name(struct view name)
{
	if (name.len == 0 || name.len > COUNTED_NAME_MAX)
		return false;
	for (size_t i = 0; i < name.len; i++) {
		char c = name.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
		      (c != '\0' && strchr("+-_.", c))))
			return false;
	}
	return true;
}

int counted_names_next(struct view *rest, struct view *ret_name, uint64_t *ret_n, struct err *e)
{
	struct view entry, name;
	uint64_t n = 1;
	size_t colon;

	if (!view_split(rest, ',', &entry))
		return 0;
	colon = view_find(entry, ':');
	name = view_trim(view_first(entry, colon));
	if (!is_name(name))
		return err_set(e, -EINVAL, "'" VIEW_FMT "' does not begin with a name",
			       VIEW_ARG(view_first(entry, 64)));
	if (colon < entry.len &&
	    (!num_parse_u64(view_trim(view_skip(entry, colon + 1)), &n) || n > NUMBER_MAX))
		return err_set(e, -EINVAL, "'" VIEW_FMT "' does not end with a number",
			       VIEW_ARG(view_first(entry, 64)));
	*ret_name = name;
	*ret_n = n;
	return 1;
}

int counted_names_check(struct view text, uint64_t max, struct err *e)
{
	uint64_t sum = 0, n;
	struct view name;
	int r;

	while ((r = counted_names_next(&text, &name, &n, e)) > 0) {
		sum += n;
		if (sum > max)
			return err_set(e, -EINVAL, "more than %" PRIu64 " in all", max);
	}
	return r;
}
