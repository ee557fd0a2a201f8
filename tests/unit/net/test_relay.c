/*
 * test_relay.c - bytes pass both ways, ends are passed on, pipes are given back.
 */
#include "net_test.h"

#include <dirent.h>
#include <signal.h>

#include "base/fd.h"
#include "net/relay.h"

#define BIG (8u << 20)

struct pair {
	struct loop *loop;
	struct relay *relay;
	int a, b; /* our ends */
	struct buf from_a, from_b;
	bool a_ended, b_ended;
	int done_n;
	size_t sent, fds;
};

static void on_done(void *arg)
{
	struct pair *p = arg;

	p->done_n++;
	relay_free(p->relay);
	p->relay = NULL;
}

static void open_relay(struct pair *p, struct buf *a_rest, struct buf *b_rest, uint64_t idle_ms)
{
	struct err e = ERR_NONE;
	int a[2], b[2];

	*p = (struct pair){0};
	buf_init(&p->from_a, 2 * BIG);
	buf_init(&p->from_b, 2 * BIG);
	test_pair(a);
	test_pair(b);
	p->a = a[0];
	p->b = b[0];
	assert_int_equal(loop_new(&p->loop, &e), 0);
	assert_int_equal(
		relay_new(p->loop, a[1], a_rest, b[1], b_rest, idle_ms, on_done, p, &p->relay, &e),
		0);
}

static void close_relay(struct pair *p)
{
	relay_free(p->relay);
	fd_close(p->a);
	fd_close(p->b);
	buf_done(&p->from_a);
	buf_done(&p->from_b);
	loop_free(p->loop);
}

static bool take_both(void *arg)
{
	struct pair *p = arg;

	p->a_ended = peer_take(p->a, &p->from_b);
	p->b_ended = peer_take(p->b, &p->from_a);
	return false;
}

static bool both_have_five(void *arg)
{
	struct pair *p = arg;

	(void)take_both(p);
	return p->from_a.len >= 5 && p->from_b.len >= 5;
}

static bool b_sees_the_end(void *arg)
{
	(void)take_both(arg);
	return ((struct pair *)arg)->b_ended;
}

static bool is_done(void *arg)
{
	(void)take_both(arg);
	return ((struct pair *)arg)->done_n > 0;
}

static void carries_bytes_both_ways_and_early_ones_first(void **state)
{
	struct buf a_rest = BUF_INIT(16), b_rest = BUF_INIT(16);
	struct pair p;

	assert_int_equal(buf_append_str(&a_rest, "ab"), 0);
	assert_int_equal(buf_append_str(&b_rest, "xy"), 0);
	open_relay(&p, &a_rest, &b_rest, 0);
	peer_say(p.a, "cde");
	peer_say(p.b, "z!?");
	spin(p.loop, both_have_five, &p);
	assert_true(view_is(buf_view(&p.from_a), "abcde"));
	assert_true(view_is(buf_view(&p.from_b), "xyz!?"));
	close_relay(&p);
}

static void passes_half_closes_on(void **state)
{
	struct pair p;

	open_relay(&p, NULL, NULL, 0);
	peer_say(p.a, "last words");
	shutdown(p.a, SHUT_WR);
	spin(p.loop, b_sees_the_end, &p);
	assert_true(view_is(buf_view(&p.from_a), "last words"));
	assert_false(p.a_ended);
	assert_int_equal(p.done_n, 0);
	peer_say(p.b, "answer after the end");
	shutdown(p.b, SHUT_WR);
	spin(p.loop, is_done, &p);
	(void)take_both(&p);
	assert_true(p.a_ended);
	assert_true(view_is(buf_view(&p.from_b), "answer after the end"));
	assert_int_equal(p.done_n, 1);
	close_relay(&p);
}

static bool push_big(void *arg)
{
	struct pair *p = arg;
	char block[4096];

	for (;;) {
		ssize_t n;

		for (size_t i = 0; i < sizeof(block); i++)
			block[i] = (char)((p->sent + i) * 31 >> 3);
		n = send(p->a, block, MIN(sizeof(block), BIG - p->sent),
			 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n <= 0 || (p->sent += (size_t)n) == BIG)
			break;
	}
	(void)take_both(p);
	return p->from_a.len == BIG;
}

static void keeps_the_order_of_many_bytes(void **state)
{
	struct pair p;

	open_relay(&p, NULL, NULL, 0);
	spin(p.loop, push_big, &p);
	for (size_t i = 0; i < BIG; i++)
		if (buf_view(&p.from_a).p[i] != (char)(i * 31 >> 3))
			fail_msg("byte %zu differs", i);
	close_relay(&p);
}

static bool is_stuck(void *arg)
{
	struct pair *p = arg;
	static const char block[65536];
	ssize_t n = send(p->a, block, sizeof(block), MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n > 0)
		p->sent += (size_t)n;
	/* Many full turns without a byte accepted: nobody reads at b, so a must wait. */
	p->fds = n > 0 ? 0 : p->fds + 1;
	assert_true(p->sent < BIG);
	return p->fds > 20;
}

static void a_slow_reader_slows_the_writer(void **state)
{
	struct pair p;

	open_relay(&p, NULL, NULL, 0);
	spin(p.loop, is_stuck, &p);
	close_relay(&p);
}

static void ends_when_one_side_is_gone(void **state)
{
	struct pair p;

	open_relay(&p, NULL, NULL, 0);
	close(p.a);
	p.a = -1;
	spin(p.loop, b_sees_the_end, &p);
	/* The other direction ends at the first byte that nobody takes. */
	peer_say(p.b, "hello?");
	spin(p.loop, is_done, &p);
	close_relay(&p);
}

static void ends_when_nothing_moves(void **state)
{
	struct pair p;

	open_relay(&p, NULL, NULL, 20);
	spin(p.loop, is_done, &p);
	assert_int_equal(p.done_n, 1);
	close_relay(&p);
}

static size_t open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static bool pipes_are_back(void *arg)
{
	return open_fds() == ((struct pair *)arg)->fds;
}

static void gives_pipes_back_when_idle(void **state)
{
	struct pair p;

	open_relay(&p, NULL, NULL, 0);
	p.fds = open_fds();
	peer_say(p.a, "hello");
	peer_say(p.b, "world");
	spin(p.loop, both_have_five, &p);
	assert_true(open_fds() > p.fds);
	spin(p.loop, pipes_are_back, &p);
	p.from_a.len = p.from_b.len = 0;
	peer_say(p.a, "again");
	peer_say(p.b, "again");
	spin(p.loop, both_have_five, &p);
	close_relay(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(carries_bytes_both_ways_and_early_ones_first),
		cmocka_unit_test(passes_half_closes_on),
		cmocka_unit_test(keeps_the_order_of_many_bytes),
		cmocka_unit_test(a_slow_reader_slows_the_writer),
		cmocka_unit_test(ends_when_one_side_is_gone),
		cmocka_unit_test(ends_when_nothing_moves),
		cmocka_unit_test(gives_pipes_back_when_idle),
	};

	/* splice(2) into a closed socket raises it: programs with relays ignore it */
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
