/*
 * test_ws_connect.c - a client that believes only a WebSocket server.
 */
#include "net_test.h"

#include "base/fd.h"
#include "net/ws_connect.h"

struct probe {
	struct loop *loop;
	struct ws_connect *connect;
	struct ws_conn *ws;
	int peer;
	struct buf got, message;
	int told;
	char error[256];
};

static void on_message(void *arg, enum ws_opcode opcode, struct view data)
{
	assert_int_equal(buf_append_view(&((struct probe *)arg)->message, data), 0);
}

static void on_closed(void *arg, unsigned code, struct view reason)
{
}

static const struct ws_events events = {.message = on_message, .closed = on_closed};

static void on_connected(void *arg, struct ws_conn *ws, const struct err *e)
{
	struct probe *p = arg;

	p->told++;
	p->ws = ws;
	snprintf(p->error, sizeof(p->error), "%s", e->msg);
	ws_connect_free(p->connect);
	p->connect = NULL;
}

static void open_probe(struct probe *p)
{
	static const struct http1_header token = {VIEW("X-Token"), VIEW("t")};
	struct ws_connect_options o = {
		.target = {.fd = -1},
		.path = VIEW("/ws?x=1"),
		.host = VIEW("box"),
		.headers = &token,
		.headers_n = 1,
		.ws = {.message_max = 1024, .queue_high = 1024},
		.events = &events,
		.events_arg = p,
	};
	struct err e = ERR_NONE;
	int fds[2];

	*p = (struct probe){0};
	buf_init(&p->got, 1 << 20);
	buf_init(&p->message, 1 << 20);
	test_pair(fds);
	o.target.fd = fds[0];
	p->peer = fds[1];
	assert_int_equal(loop_new(&p->loop, &e), 0);
	assert_int_equal(ws_connect_new(p->loop, &o, on_connected, p, &p->connect, &e), 0);
}

static void close_probe(struct probe *p)
{
	ws_connect_free(p->connect);
	ws_conn_free(p->ws);
	fd_close(p->peer);
	buf_done(&p->got);
	buf_done(&p->message);
	loop_free(p->loop);
}

static bool is_told(void *arg)
{
	return ((struct probe *)arg)->told > 0;
}

static bool has_message(void *arg)
{
	return ((struct probe *)arg)->message.len > 0;
}

static bool has_request(void *arg)
{
	struct probe *p = arg;

	(void)peer_take(p->peer, &p->got);
	return view_ends(buf_view(&p->got), VIEW("\r\n\r\n"));
}

/* The right answer to the key that the client sent. */
static void accept_of(struct probe *p, char ret[29])
{
	struct view v = buf_view(&p->got);
	size_t at = view_find_view(v, VIEW("Sec-WebSocket-Key: "));

	assert_true(at < v.len);
	v = view_first(view_skip(v, at + 19), 24);
	assert_true(ws_key_valid(v));
	ws_accept_key(v, ret);
}

static void connects_and_reads_what_came_along(void **state)
{
	char answer[512], accept[29];
	struct probe p;
	int n;

	open_probe(&p);
	spin(p.loop, has_request, &p);
	assert_true(view_starts(buf_view(&p.got), VIEW("GET /ws?x=1 HTTP/1.1\r\nHost: box\r\n")));
	assert_true(view_find_view(buf_view(&p.got), VIEW("X-Token: t\r\n")) < p.got.len);
	accept_of(&p, accept);
	n = snprintf(answer, sizeof(answer),
		     "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\n"
		     "Connection: upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n\x81\x02hi",
		     accept);
	peer_send(p.peer, answer, (size_t)n);
	spin(p.loop, has_message, &p);
	assert_non_null(p.ws);
	assert_string_equal(buf_str(&p.message), "hi");
	close_probe(&p);
}

static void believes_no_other_answer(void **state)
{
	static const char *const answers[] = {
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno",
		"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
		("HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
		 "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"),
		"HTTP/1.1 101 X\r\nUpgrade: chat\r\nConnection: upgrade\r\n\r\n",
		"not HTTP\r\n\r\n",
		"",
	};

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct probe p;

		open_probe(&p);
		spin(p.loop, has_request, &p);
		peer_say(p.peer, answers[i]);
		shutdown(p.peer, SHUT_WR);
		spin(p.loop, is_told, &p);
		assert_null(p.ws);
		assert_int_equal(p.told, 1);
		assert_true(p.error[0] != '\0');
		close_probe(&p);
	}
}

static void believes_no_extension_that_nobody_offered(void **state)
{
	char answer[512], accept[29];
	struct probe p;
	int n;

	open_probe(&p);
	spin(p.loop, has_request, &p);
	accept_of(&p, accept);
	n = snprintf(answer, sizeof(answer),
		     "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
		     "Sec-WebSocket-Accept: %s\r\n"
		     "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
		     accept);
	peer_send(p.peer, answer, (size_t)n);
	spin(p.loop, is_told, &p);
	assert_null(p.ws);
	close_probe(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connects_and_reads_what_came_along),
		cmocka_unit_test(believes_no_other_answer),
		cmocka_unit_test(believes_no_extension_that_nobody_offered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
