/*
 * Event objects: the exact bytes that clients read.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "base/buf.h"
#include "codec/events.h"

static void writes_the_exact_bytes_of_each_event(void **state)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(4096);

	assert_int_equal(events_text(&b, "init", VIEW("4f2a"), 1731659187000), 0);
	assert_int_equal(events_text(&b, "stdout", VIEW("a \"q\"\t\xff"), 7), 0);
	assert_int_equal(events_text(&b, "stdout", VIEW("\n"), 8), 0);
	assert_int_equal(events_text(&b, "stderr", VIEW_NONE, 9), 0);
	assert_int_equal(events_complete(&b, 12, 10), 0);
	assert_int_equal(events_complete(&b, 0, UINT64_MAX), 0);
	assert_string_equal(
		buf_str(&b),
		"{\"type\":\"init\",\"text\":\"4f2a\",\"timestamp\":1731659187000}\n\n"
		"{\"type\":\"stdout\",\"text\":\"a \\\"q\\\"\\t\xef\xbf\xbd\",\"timestamp\":7}\n\n"
		"{\"type\":\"stdout\",\"text\":\"\\n\",\"timestamp\":8}\n\n"
		"{\"type\":\"stderr\",\"timestamp\":9}\n\n"
		"{\"type\":\"execution_complete\",\"execution_time\":12,\"timestamp\":10}\n\n"
		"{\"type\":\"execution_complete\",\"timestamp\":18446744073709551615}\n\n");
}

static void writes_errors_with_all_three_keys(void **state)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(4096);

	assert_int_equal(events_error(&b, "CommandExecError", VIEW("3"), VIEW("exit status 3"), 5),
			 0);
	assert_int_equal(events_error(&b, "RuntimeError", VIEW("no\n"), VIEW_NONE, 6), 0);
	assert_string_equal(buf_str(&b),
			    "{\"type\":\"error\",\"error\":{\"ename\":\"CommandExecError\","
			    "\"evalue\":\"3\",\"traceback\":[\"exit status 3\"]},\"timestamp\":5}"
			    "\n\n{\"type\":\"error\",\"error\":{\"ename\":\"RuntimeError\","
			    "\"evalue\":\"no\\n\",\"traceback\":[]},\"timestamp\":6}\n\n");
}

/* At every ceiling: a whole event or none. */
static void never_leaves_half_an_event_behind(void **state)
{
	for (size_t max = 0; max < 160; max++) {
		osb_cleanup(buf_done) struct buf b = BUF_INIT(max);

		if (events_text(&b, "stdout", VIEW("\n\n\n\n0123456789\x01\x02"), 1) < 0)
			assert_int_equal(b.len, 0);
		buf_clear(&b);
		if (events_complete(&b, 1, 1) < 0)
			assert_int_equal(b.len, 0);
		buf_clear(&b);
		if (events_error(&b, "E", VIEW("v"), VIEW("t"), 1) < 0)
			assert_int_equal(b.len, 0);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_the_exact_bytes_of_each_event),
		cmocka_unit_test(writes_errors_with_all_three_keys),
		cmocka_unit_test(never_leaves_half_an_event_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
