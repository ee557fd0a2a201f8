/*
 * net_test.h - a loop, a deadline and a far end that a test plays by hand.
 *
 * A test waits for a condition, never for a time: spin() turns the loop until the condition holds
 * and fails the test when it still does not after half a minute.
 */
#pragma once

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "net/loop.h"

#define TEST_DEADLINE_US (30u * 1000 * 1000)

typedef bool condition_fn(void *arg);

struct spinner {
	struct loop *loop;
	condition_fn *condition;
	void *arg;
	uint64_t since_us;
	bool held;
};

static inline void spinner_check(void *arg)
{
	struct spinner *s = arg;

	s->held = s->condition(s->arg);
	if (s->held || loop_now_us(s->loop) - s->since_us > TEST_DEADLINE_US)
		loop_stop(s->loop);
}

/* Turns the loop until condition(arg). */
static inline void spin(struct loop *l, condition_fn *condition, void *arg)
{
	struct spinner s = {l, condition, arg, loop_now_us(l), false};
	struct loop_timer *t = loop_timer_new(l, spinner_check, &s);

	loop_timer_repeat(t, 1);
	loop_run(l);
	loop_timer_free(t);
	assert_true(s.held);
}

static inline void test_pair(int ret[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ret),
			 0);
}

/* Takes what has come; true when the other end has closed. */
static inline bool peer_take(int fd, struct buf *into)
{
	char bytes[65536];
	ssize_t n;

	while ((n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		assert_int_equal(buf_append(into, bytes, (size_t)n), 0);
	return n == 0 || errno != EAGAIN;
}

static inline void peer_send(int fd, const void *bytes, size_t n)
{
	assert_int_equal(send(fd, bytes, n, MSG_NOSIGNAL), (ssize_t)n);
}

static inline void peer_say(int fd, const char *text)
{
	peer_send(fd, text, strlen(text));
}
