/*
 * ingress/keys.c - see keys.h.
 */
#include "ingress/keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "policy/preview.h"

static int take_key(struct view part, struct route_key *keys, size_t n, struct err *e)
{
	size_t equals = view_find(part, '=');
	struct view id = view_trim(view_first(part, equals));
	int r;

	if (equals == part.len)
		return err_set(e, -EINVAL, "a key is written NAME=BASE64");
	r = preview_key_parse(id, view_trim(view_skip(part, equals + 1)), &keys[n], e);
	for (size_t i = 0; r == 0 && i < n; i++)
		if (keys[i].id == keys[n].id)
			r = err_set(e, -EINVAL, "the key '%c' is given twice", keys[n].id);
	return r;
}

int keys_parse(struct view text, struct route_key **ret, size_t *ret_n, struct err *e)
{
	struct route_key *keys = mem_new_array(struct route_key, PREVIEW_KEYS_MAX);
	struct view rest = text, part;
	size_t n = 0;
	int r = 0;

	while (r == 0 && view_split(&rest, ',', &part)) {
		if (n == PREVIEW_KEYS_MAX)
			r = err_set(e, -E2BIG, "there are more than %d keys", PREVIEW_KEYS_MAX);
		else
			r = take_key(part, keys, n++, e);
	}
	if (r == 0 && n == 0)
		r = err_set(e, -EINVAL, "there is no key");
	if (r < 0) {
		explicit_bzero(keys, PREVIEW_KEYS_MAX * sizeof(*keys));
		free(keys);
		return r;
	}
	*ret = keys;
	*ret_n = n;
	return 0;
}
