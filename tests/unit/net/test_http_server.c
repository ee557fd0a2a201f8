/*
 * test_http_server.c - limits, timeouts, draining and back-pressure of the server, with small
 * numbers.
 *
 * What clients do on the wire is tested from outside (tests/component/test_http_abuse.py).
 */
#include "net_test.h"

#include <sys/un.h>

#include "base/fd.h"
#include "net/event_stream.h"
#include "net/http_server.h"

/* One server, one client that reads in the same loop. */
struct bench {
	struct loop *loop;
	struct http_server *server;
	char dir[32], path[64];
	int client;
	struct loop_fd *watch;
	struct buf got;
	bool eof;
	/* the handler's side */
	struct http_exchange *x;
	unsigned handled, gone, drained_calls, bodies;
	size_t body_bytes, sent;
	unsigned turns;
	bool pause_body;
	http_handler_fn *handler;
};

static void client_reads(void *arg, int fd, unsigned events)
{
	struct bench *b = arg;
	char text[65536];
	ssize_t n = recv(fd, text, sizeof(text), MSG_DONTWAIT);

	(void)events;
	if (n > 0)
		assert_int_equal(buf_append(&b->got, text, (size_t)n), 0);
	if (n == 0) {
		b->eof = true;
		loop_fd_want(b->watch, 0);
	}
}

static void handle(struct http_exchange *x, void *arg)
{
	struct bench *b = arg;

	b->handled++;
	b->x = x;
	b->handler(x, b);
}

static struct bench *bench_new(const struct http_limits *limits, http_handler_fn *handler)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct err e = ERR_NONE;

	snprintf(b->dir, sizeof(b->dir), "/tmp/http-server-XXXXXX");
	assert_non_null(mkdtemp(b->dir));
	snprintf(b->path, sizeof(b->path), "%s/s", b->dir);
	b->handler = handler;
	buf_init(&b->got, 64u << 20);
	assert_int_equal(loop_new(&b->loop, &e), 0);
	assert_int_equal(http_server_new(b->loop, limits, handle, b, &b->server, &e), 0);
	assert_int_equal(http_server_listen_unix(b->server, b->path, 0600, &e), 0);
	b->client = -1;
	return b;
}

static void connect_client(struct bench *b)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct err e = ERR_NONE;

	loop_fd_free(b->watch);
	fd_close(b->client);
	memcpy(a.sun_path, b->path, strlen(b->path) + 1);
	b->client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(b->client, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(loop_fd_new(b->loop, b->client, client_reads, b, &b->watch, &e), 0);
	loop_fd_want(b->watch, LOOP_READ);
	b->eof = false;
	buf_clear(&b->got);
}

static void send_text(struct bench *b, const char *text)
{
	assert_int_equal(send(b->client, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static bool got(struct bench *b, const char *text)
{
	return strstr(buf_str(&b->got), text) != NULL;
}

static bool at_the_end(void *arg)
{
	return ((struct bench *)arg)->eof;
}

static bool handler_ran(void *arg)
{
	return ((struct bench *)arg)->x != NULL;
}

static bool client_is_gone(void *arg)
{
	return ((struct bench *)arg)->gone > 0;
}

static bool ended_and_drained(void *arg)
{
	struct bench *b = arg;

	return b->eof && b->drained_calls > 0;
}

static bool has_answer(void *arg)
{
	return got(arg, "\r\n\r\n");
}

static bool has_done(void *arg)
{
	return got(arg, "done");
}

static void bench_free(struct bench *b)
{
	loop_fd_free(b->watch);
	fd_close(b->client);
	http_server_free(b->server);
	loop_free(b->loop);
	buf_done(&b->got);
	unlink(b->path);
	rmdir(b->dir);
	free(b);
}

static void answer_ok(struct http_exchange *x, void *arg)
{
	(void)arg;
	http_reply(x, 200, "text/plain", VIEW("ok"));
}

static void stops_waiting_for_a_slow_head(void **state)
{
	struct http_limits l = http_limits_default;
	struct bench *b;

	(void)state;
	l.head_ms = 60;
	b = bench_new(&l, answer_ok);
	connect_client(b);
	send_text(b, "GET / HT");
	spin(b->loop, at_the_end, b);
	assert_true(got(b, "HTTP/1.1 408 "));
	assert_int_equal(b->handled, 0);
	bench_free(b);
}

static void closes_idle_connections(void **state)
{
	struct http_limits l = http_limits_default;
	struct bench *b;

	(void)state;
	l.idle_ms = 60;
	b = bench_new(&l, answer_ok);
	connect_client(b);
	spin(b->loop, at_the_end, b);
	assert_int_equal(b->got.len, 0);
	connect_client(b);
	send_text(b, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
	spin(b->loop, at_the_end, b); /* answered, then idle, then closed */
	assert_true(got(b, "HTTP/1.1 200 "));
	bench_free(b);
}

static bool is_accepted(void *arg)
{
	return http_server_connections(((struct bench *)arg)->server) == 1;
}

static void a_request_that_waits_is_served_though_its_time_is_up(void **state)
{
	struct http_limits l = http_limits_default;
	struct bench *b;

	(void)state;
	l.idle_ms = 30;
	b = bench_new(&l, answer_ok);
	connect_client(b);
	spin(b->loop, is_accepted, b);
	send_text(b, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
	usleep(60000); /* the loop is held up, as when a sandbox is paused */
	spin(b->loop, at_the_end, b);
	assert_true(got(b, "HTTP/1.1 200 "));
	bench_free(b);
}

static void body_came(struct http_exchange *x, struct view piece, void *arg)
{
	struct bench *b = arg;

	b->bodies++;
	b->body_bytes += piece.len;
	if (piece.len == 0)
		http_reply(x, 200, NULL, VIEW("done"));
	else if (b->pause_body)
		http_body_pause(x);
}

static void client_gone(struct http_exchange *x, void *arg)
{
	struct bench *b = arg;

	(void)x;
	b->gone++;
	b->x = NULL;
}

static void stream_body(struct http_exchange *x, void *arg)
{
	http_on_gone(x, client_gone, arg);
	http_body_stream(x, body_came, arg);
}

static void stops_waiting_for_a_body(void **state)
{
	struct http_limits l = http_limits_default;
	struct bench *b;

	(void)state;
	l.body_stall_ms = 60;
	b = bench_new(&l, stream_body);
	connect_client(b);
	send_text(b, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
	spin(b->loop, at_the_end, b);
	assert_int_equal(b->gone, 1);
	assert_true(got(b, "HTTP/1.1 408 "));
	assert_int_equal(b->body_bytes, 3);
	bench_free(b);
}

static void tells_when_the_client_leaves_in_the_middle(void **state)
{
	struct bench *b = bench_new(NULL, stream_body);

	(void)state;
	connect_client(b);
	send_text(b, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
	shutdown(b->client, SHUT_RDWR);
	loop_fd_want(b->watch, 0);
	spin(b->loop, client_is_gone, b);
	bench_free(b);
}

static void wait_silently(struct http_exchange *x, void *arg)
{
	http_on_gone(x, client_gone, arg);
}

static void tells_when_the_client_leaves_a_silent_exchange(void **state)
{
	struct bench *b = bench_new(NULL, wait_silently);

	(void)state;
	connect_client(b);
	send_text(b, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
	spin(b->loop, handler_ran, b);
	loop_fd_free(b->watch);
	b->watch = NULL;
	b->client = fd_close(b->client);
	spin(b->loop, client_is_gone, b);
	bench_free(b);
}

/* Sends on as far as the socket takes it. */
static char big[1 << 20];

static bool all_sent(void *arg)
{
	struct bench *b = arg;
	ssize_t n = send(b->client, big, sizeof(big) - b->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

	b->sent += n > 0 ? (size_t)n : 0;
	return b->sent == sizeof(big);
}

static bool sent_for_a_while(void *arg)
{
	struct bench *b = arg;

	(void)all_sent(b);
	return ++b->turns == 50;
}

static void does_not_read_a_paused_body(void **state)
{
	struct bench *b = bench_new(NULL, stream_body);

	(void)state;
	b->pause_body = true;
	connect_client(b);
	send_text(b, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n");
	spin(b->loop, sent_for_a_while, b);
	assert_int_equal(b->bodies, 1);
	assert_true(b->sent < sizeof(big));
	b->pause_body = false;
	http_body_resume(b->x);
	spin(b->loop, all_sent, b);
	spin(b->loop, has_done, b);
	assert_int_equal(b->body_bytes, sizeof(big));
	bench_free(b);
}

static void drained(struct http_exchange *x, void *arg)
{
	struct bench *b = arg;

	b->drained_calls++;
	http_reply_end(x);
}

static void fill_queue(struct http_exchange *x, void *arg)
{
	static char block[65536];
	size_t total = 0;

	http_on_drained(x, drained, arg);
	http_reply_begin(x, 200, -1);
	while (http_reply_write(x, view_mem(block, sizeof(block))))
		total += sizeof(block);
	assert_true(total < 16u << 20);
}

static void says_stop_and_go_to_a_writer(void **state)
{
	struct bench *b = bench_new(NULL, fill_queue);

	(void)state;
	connect_client(b);
	send_text(b, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	spin(b->loop, at_the_end, b);
	assert_int_equal(b->drained_calls, 1);
	assert_memory_equal(buf_view(&b->got).p + b->got.len - 5, "0\r\n\r\n", 5);
	bench_free(b);
}

static void collect_little(struct http_exchange *x, void *arg)
{
	http_body_collect(x, 8, body_came, arg);
}

static void refuses_bodies_beyond_the_limit(void **state)
{
	static const char *const requests[] = {
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n123456789",
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
		"chunked\r\n\r\n5\r\n12345\r\n4\r\n6789\r\n0\r\n\r\n",
	};
	struct bench *b = bench_new(NULL, collect_little);

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		connect_client(b);
		send_text(b, requests[i]);
		spin(b->loop, has_answer, b);
		assert_true(got(b, "HTTP/1.1 413 "));
	}
	assert_int_equal(b->bodies, 0);
	bench_free(b);
}

static void drain_done(void *arg)
{
	struct bench *b = arg;

	b->drained_calls++;
}

static void drains_before_it_ends(void **state)
{
	struct bench *b = bench_new(NULL, wait_silently);

	(void)state;
	connect_client(b);
	send_text(b, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
	spin(b->loop, handler_ran, b);
	http_server_drain(b->server, 20000, drain_done, b);
	assert_int_equal(b->drained_calls, 0);
	http_on_gone(b->x, NULL, NULL);
	http_reply(b->x, 200, NULL, VIEW("last"));
	spin(b->loop, ended_and_drained, b);
	assert_true(got(b, "Connection: close") && got(b, "last"));
	bench_free(b);
}

static void cuts_what_does_not_end_in_time(void **state)
{
	struct bench *b = bench_new(NULL, wait_silently);

	(void)state;
	connect_client(b);
	send_text(b, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
	spin(b->loop, handler_ran, b);
	http_server_drain(b->server, 30, drain_done, b);
	spin(b->loop, ended_and_drained, b);
	assert_int_equal(b->gone, 1);
	bench_free(b);
}

static void event_gone(void *arg)
{
	(void)arg;
	fail_msg("nobody has left");
}

static void send_events(struct http_exchange *x, void *arg)
{
	struct bench *b = arg;
	struct event_stream *s =
		event_stream_new(b->loop, x, EVENT_STREAM_PINGS, NULL, event_gone, b);

	assert_true(event_stream_send(s, VIEW("{\"type\":\"init\"}\n\n")));
	assert_true(event_stream_send(s, VIEW("{\"type\":\"stdout\"}\n\n")));
	event_stream_end(s);
}

static void streams_events_with_a_ping_behind_the_first(void **state)
{
	struct bench *b = bench_new(NULL, send_events);
	const char *init, *ping, *out;

	(void)state;
	connect_client(b);
	send_text(b, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	spin(b->loop, at_the_end, b);
	assert_true(got(b, "Content-Type: text/event-stream\r\n"));
	init = strstr(buf_str(&b->got), "init");
	ping = strstr(buf_str(&b->got), "\"ping\",\"text\":\"pong\"");
	out = strstr(buf_str(&b->got), "stdout");
	assert_true(init && ping && out && init < ping && ping < out);
	bench_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stops_waiting_for_a_slow_head),
		cmocka_unit_test(closes_idle_connections),
		cmocka_unit_test(a_request_that_waits_is_served_though_its_time_is_up),
		cmocka_unit_test(stops_waiting_for_a_body),
		cmocka_unit_test(tells_when_the_client_leaves_in_the_middle),
		cmocka_unit_test(tells_when_the_client_leaves_a_silent_exchange),
		cmocka_unit_test(does_not_read_a_paused_body),
		cmocka_unit_test(says_stop_and_go_to_a_writer),
		cmocka_unit_test(refuses_bodies_beyond_the_limit),
		cmocka_unit_test(drains_before_it_ends),
		cmocka_unit_test(cuts_what_does_not_end_in_time),
		cmocka_unit_test(streams_events_with_a_ping_behind_the_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
