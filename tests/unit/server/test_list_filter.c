/*
 * test_list_filter.c - which sandboxes a query lets through.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "server/failure.h"
#include "server/list_filter.h"
#include "server/sandbox.h"

static int read_query(struct arena *a, const char *query, struct list_filter *q, struct failure *f)
{
	*f = FAILURE_NONE;
	return list_filter_read(a, view_of(query), q, f);
}

static struct sandbox *box(enum sandbox_state state)
{
	struct sandbox *b = sandbox_new();

	b->state = state;
	pairs_add(&b->spec.metadata, VIEW("app"), VIEW("web"));
	pairs_add(&b->spec.metadata, VIEW("team.io/name"), VIEW("a-b"));
	pairs_add(&b->spec.metadata, VIEW("empty"), VIEW(""));
	return b;
}

static void lets_through_any_of_the_states_and_all_of_the_labels(void **state)
{
	static const struct {
		const char *query;
		bool running, paused; /* let through */
	} cases[] = {
		{"", true, true},
		{"state=Running", true, false},
		{"state=rUNNing", true, false},
		{"state=Paused&state=Running", true, true},
		{"state=Paused&state=nonsense", false, true},
		{"state=nonsense", false, false},
		{"state=", false, false},
		{"metadata=app%3Dweb", true, true},
		{"metadata=app%3Dweb%26empty%3D", true, true},
		{"metadata=app%3Dweb%26team.io%2Fname%3Da-b", true, true},
		{"metadata=team.io%252Fname%3Da-b", true, true}, /* encoded twice */
		{"metadata=app%3Dother", false, false},
		{"metadata=app%3D", false, false},
		{"metadata=app%3Dweb%26nobody%3Dx", false, false},
		{"metadata=", true, true},
		{"metadata=app%3Dweb&metadata=app%3Dother", true, true}, /* the first counts */
		{"metadata=&metadata=app%3Dother", true, true},
		{"state=Paused&metadata=app%3Dweb", false, true},
		{"unknown=x", true, true},
	};
	struct sandbox *running = box(SANDBOX_RUNNING), *paused = box(SANDBOX_PAUSED);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct list_filter q;
		struct failure f;
		struct arena a;

		arena_init(&a, 65536);
		if (read_query(&a, cases[i].query, &q, &f) < 0)
			fail_msg("%s: %s", cases[i].query, f.message);
		if (list_filter_matches(&q, running) != cases[i].running ||
		    list_filter_matches(&q, paused) != cases[i].paused)
			fail_msg("%s", cases[i].query);
		arena_done(&a);
	}
	sandbox_free(running);
	sandbox_free(paused);
}

static void reads_pages(void **state)
{
	static const struct {
		const char *query;
		uint64_t page, size; /* 0 = refused */
	} cases[] = {
		{"", 1, 20},
		{"page=3", 3, 20},
		{"page=3&pageSize=200", 3, 200},
		{"page=4294967295&pageSize=1", 4294967295, 1},
		{"page=0", 0, 0},
		{"page=-1", 0, 0},
		{"page=x", 0, 0},
		{"page=", 0, 0},
		{"page=1.5", 0, 0},
		{"page=99999999999999999999", 0, 0},
		{"pageSize=0", 0, 0},
		{"pageSize=201", 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct list_filter q;
		struct failure f;
		struct arena a;
		int r;

		arena_init(&a, 65536);
		r = read_query(&a, cases[i].query, &q, &f);
		if (cases[i].page == 0) {
			assert_int_equal(r, -1);
			assert_int_equal(f.status, 422);
			assert_non_null(strstr(f.message, "page"));
		} else {
			assert_int_equal(r, 0);
			assert_int_equal(q.page.number, cases[i].page);
			assert_int_equal(q.page.size, cases[i].size);
		}
		arena_done(&a);
	}
}

static void refuses_metadata_that_is_no_list_of_pairs(void **state)
{
	static const char *const queries[] = {
		"metadata=app", "metadata=app%3Dweb%26other", "metadata=%26",
		"metadata=a%3D%25zz", /* a bad escape inside */
	};
	char many[2048] = "metadata=";
	struct list_filter q;
	struct failure f;
	struct arena a;

	(void)state;
	arena_init(&a, 65536);
	for (size_t i = 0; i < ARRAY_LEN(queries); i++) {
		assert_int_equal(read_query(&a, queries[i], &q, &f), -1);
		assert_int_equal(f.status, 400);
		assert_string_equal(f.code, "INVALID_METADATA_FORMAT");
	}
	for (int i = 0; i <= LIST_FILTER_LABELS_MAX; i++)
		strcat(many, "a%3Db%26");
	assert_int_equal(read_query(&a, many, &q, &f), -1);
	assert_int_equal(f.status, 400);
	assert_int_equal(read_query(&a, "state=%zz", &q, &f), -1);
	assert_int_equal(f.status, 422);
	arena_done(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lets_through_any_of_the_states_and_all_of_the_labels),
		cmocka_unit_test(reads_pages),
		cmocka_unit_test(refuses_metadata_that_is_no_list_of_pairs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
