/*
 * test_expiry.c - sandboxes expire in order, and only those that are due.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "net/loop.h"
#include "server/expiry.h"
#include "server/sandbox.h"

#define MANY	 500
#define HOUR_US	 INT64_C(3600000000)
#define LIMIT_MS 30000

struct test {
	struct loop *loop;
	struct expiry *expiry;
	struct loop_timer *limit;
	struct sandbox *boxes[MANY];
	struct sandbox *expired[MANY];
	size_t expired_n, stop_at;
};

static int64_t now_us(void)
{
	return (int64_t)(clock_wall_ns() / 1000);
}

static void on_expired(void *arg, struct sandbox *b)
{
	struct test *t = arg;

	assert_true(b->expires_us <= now_us());
	assert_int_equal(b->expiry_slot, SIZE_MAX);
	t->expired[t->expired_n++] = b;
	if (t->expired_n == t->stop_at)
		loop_stop(t->loop);
}

static void too_late(void *arg)
{
	struct test *t = arg;

	loop_stop(t->loop);
}

static int set_up(void **state)
{
	struct test *t = calloc(1, sizeof(*t));
	struct err e = ERR_NONE;

	if (!t || loop_new(&t->loop, &e) < 0)
		return -1;
	t->expiry = expiry_new(t->loop, on_expired, t);
	t->limit = loop_timer_new(t->loop, too_late, t);
	for (size_t i = 0; i < MANY; i++)
		t->boxes[i] = sandbox_new();
	*state = t;
	return 0;
}

static int tear_down(void **state)
{
	struct test *t = *state;

	expiry_free(t->expiry);
	loop_timer_free(t->limit);
	for (size_t i = 0; i < MANY; i++)
		sandbox_free(t->boxes[i]);
	loop_free(t->loop);
	free(t);
	return 0;
}

static void wait_for(struct test *t, size_t n)
{
	t->stop_at = n;
	loop_timer_start(t->limit, LIMIT_MS);
	loop_run(t->loop);
	loop_timer_stop(t->limit);
	assert_int_equal(t->expired_n, n);
}

static void ends_the_overdue_in_order_and_leaves_the_rest(void **state)
{
	struct test *t = *state;
	int64_t now = now_us();

	/* In an order that is none: 7 and MANY have no common divisor. */
	for (size_t i = 0; i < MANY; i++) {
		struct sandbox *b = t->boxes[i * 7 % MANY];
		int64_t n = (int64_t)(i * 7 % MANY);

		b->expires_us = n % 2 ? now - (MANY - n) : now + HOUR_US + n;
		expiry_update(t->expiry, b);
	}
	wait_for(t, MANY / 2);
	for (size_t i = 0; i < MANY / 2; i++)
		assert_ptr_equal(t->expired[i], t->boxes[2 * i + 1]);
}

static void forgets_the_renewed_and_the_removed(void **state)
{
	struct test *t = *state;
	int64_t now = now_us();

	for (size_t i = 0; i < MANY; i++) {
		t->boxes[i]->expires_us = now + 20000 + (int64_t)i;
		expiry_update(t->expiry, t->boxes[i]);
	}
	for (size_t i = 0; i < MANY; i++) {
		if (i % 5 == 0) {
			t->boxes[i]->expires_us = now + HOUR_US;
			expiry_update(t->expiry, t->boxes[i]);
		} else if (i % 5 == 1) {
			t->boxes[i]->expires_us = 0; /* never */
			expiry_update(t->expiry, t->boxes[i]);
		} else if (i % 5 == 2) {
			expiry_remove(t->expiry, t->boxes[i]);
			expiry_remove(t->expiry, t->boxes[i]); /* twice is once */
		}
	}
	wait_for(t, MANY / 5 * 2);
	for (size_t i = 0; i < t->expired_n; i++)
		assert_ptr_equal(t->expired[i], t->boxes[i / 2 * 5 + 3 + i % 2]);
}

static void brings_an_expiry_forward(void **state)
{
	struct test *t = *state;

	t->boxes[0]->expires_us = now_us() + HOUR_US;
	expiry_update(t->expiry, t->boxes[0]);
	t->boxes[0]->expires_us = now_us() + 1000;
	expiry_update(t->expiry, t->boxes[0]);
	wait_for(t, 1);
	assert_ptr_equal(t->expired[0], t->boxes[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ends_the_overdue_in_order_and_leaves_the_rest,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(forgets_the_renewed_and_the_removed, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(brings_an_expiry_forward, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
