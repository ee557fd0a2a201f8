/*
 * fuzz_url.c - request targets, percent-encoding, queries.
 *
 * Invariants: what is encoded decodes to itself; a decoded text holds no NUL and is no longer than
 * its source; url_query_get() finds what walking the query finds first.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "codec/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_round_trip(struct arena *a, struct view text)
{
	osb_cleanup(buf_done) struct buf encoded = BUF_INIT(1 << 22);
	struct view back;
	int r = url_encode(&encoded, text, text.len % 2 == 0);

	assert(r == 0);
	r = url_decode(a, buf_view(&encoded), text.len % 3 == 0 ? URL_FORM : URL_PATH, &back);
	if (view_has(text, '\0'))
		assert(r == -EINVAL);
	else
		assert(r == 0 && view_eq(back, text));
}

static void check_decode(struct arena *a, struct view text)
{
	struct view out;
	int r = url_decode(a, text, URL_FORM, &out);

	assert(r == 0 || r == -EINVAL);
	if (r == 0)
		assert(out.len <= text.len && !view_has(out, '\0'));
}

static void check_query(struct arena *a, struct view query)
{
	struct view rest = query, name, value, first_name, got;
	char *wanted = NULL;
	int r;

	if (url_query_next(a, &rest, &first_name, &value) <= 0)
		return;
	/* Asked for by its decoded name, the first pair is the one that is found. */
	wanted = arena_str(a, first_name);
	assert(wanted);
	r = url_query_get(a, query, wanted, &got);
	assert(r == 1 && view_eq(got, value));
	while ((r = url_query_next(a, &rest, &name, &value)) > 0)
		assert(!view_has(name, '\0') && !view_has(value, '\0'));
	assert(r == 0 || r == -EINVAL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view text = view_mem(data, size);
	struct url_target t;
	struct arena a;

	if (size > 1 << 16)
		return 0;
	arena_init(&a, 1 << 24);
	if (url_target_parse(text, &t)) {
		assert(t.path.len > 0 && t.path.p[0] == '/');
		assert(t.path.len + t.query.len <= text.len + 1);
		assert(!view_has(t.path, '?') && !view_has(t.path, '#') && !view_has(t.query, ' '));
		check_query(&a, t.query);
	}
	check_round_trip(&a, text);
	check_decode(&a, text);
	check_query(&a, text);
	arena_done(&a);
	return 0;
}
