/*
 * Memory that runs out: whatever grows with input reports it and keeps what it had.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "fault.h"

/* Appends until something fails; what was there before stays as it was. */
static int fill_buffer(void *arg)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(100000);
	char chunk[1000];
	int r = 0;

	memset(chunk, 'x', sizeof(chunk));
	for (int i = 0; i < 50 && r == 0; i++) {
		size_t before = b.len;

		r = i % 2 ? buf_append(&b, chunk, sizeof(chunk)) : buf_printf(&b, "%0999d", i);
		assert_true(r == 0 ? b.len > before : b.len == before);
		assert_true(r == 0 || r == -ENOMEM);
	}
	for (size_t i = 0; i < b.len; i++)
		assert_true(buf_view(&b).p[i] == 'x' ||
			    (buf_view(&b).p[i] >= '0' && buf_view(&b).p[i] <= '9'));
	return r;
}

static int fill_arena(void *arg)
{
	struct arena a;
	struct view v = VIEW("unset");
	int r = 0;

	arena_init(&a, 1 << 20);
	for (size_t i = 1; i < 200 && r == 0; i++) {
		size_t used = a.used;
		char *p = i % 3 ? arena_alloc(&a, i * 37) : arena_printf(&a, "%0200zu", i);

		r = p ? 0 : -ENOMEM;
		assert_true(p ? a.used > used : a.used == used);
	}
	if (r == 0)
		r = arena_view(&a, VIEW("copied"), &v);
	assert_true(view_is(v, r == 0 ? "copied" : "unset"));
	arena_done(&a);
	return r;
}

static void a_buffer_reports_it_and_keeps_its_content(void **state)
{
	assert_true(fault_each(FAULT_MEMORY, fill_buffer, NULL) >= 5);
}

static void an_arena_reports_it_and_stays_usable(void **state)
{
	assert_true(fault_each(FAULT_MEMORY, fill_arena, NULL) >= 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_buffer_reports_it_and_keeps_its_content),
		cmocka_unit_test(an_arena_reports_it_and_stays_usable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
