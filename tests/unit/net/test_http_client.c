/*
 * test_http_client.c - requests as they are written, answers as they are believed.
 */
#include "net_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "base/fd.h"
#include "net/http_client.h"

struct probe {
	struct loop *loop;
	struct http_call *call;
	int peer, listener;
	struct buf body, sent;
	int heads, status, done_n, result, interims, drained_n;
	char message[256];
	int upgraded_fd;
	struct buf rest;
	bool take_upgrade, pause_at_body, free_at_head, free_at_body;
};

static void on_head(void *arg, const struct http1_head *h)
{
	struct probe *p = arg;

	p->heads++;
	p->status = h->status;
	if (h->status == 101 && p->take_upgrade)
		p->upgraded_fd = http_call_upgrade(p->call, &p->rest);
	if (p->free_at_head) {
		http_call_free(p->call);
		p->call = NULL;
	}
}

static void on_body(void *arg, struct view bytes)
{
	struct probe *p = arg;

	assert_int_equal(buf_append_view(&p->body, bytes), 0);
	if (p->pause_at_body)
		http_call_pause(p->call);
	if (p->free_at_body) {
		http_call_free(p->call);
		p->call = NULL;
	}
}

static void on_drained(void *arg)
{
	((struct probe *)arg)->drained_n++;
}

static void on_interim(void *arg, int status)
{
	((struct probe *)arg)->interims++;
}

static void on_done(void *arg, int result, const struct err *e)
{
	struct probe *p = arg;

	p->done_n++;
	p->result = result;
	snprintf(p->message, sizeof(p->message), "%s", e->msg);
	assert_true(result == 0 || e->msg[0] != '\0');
	http_call_free(p->call);
	p->call = NULL;
}

static const struct http_call_events events = {on_head, on_body, on_drained, on_done, on_interim};

static bool is_done(void *arg)
{
	return ((struct probe *)arg)->done_n > 0;
}

static void open_probe(struct probe *p)
{
	struct err e = ERR_NONE;

	*p = (struct probe){.peer = -1, .upgraded_fd = -1};
	buf_init(&p->body, 64 << 20);
	buf_init(&p->sent, 64 << 20);
	assert_int_equal(loop_new(&p->loop, &e), 0);
}

static void open_pair(struct probe *p, uint64_t idle_ms)
{
	struct http_target t = {.fd = -1, .idle_timeout_ms = idle_ms};
	struct err e = ERR_NONE;
	int fds[2];

	open_probe(p);
	test_pair(fds);
	t.fd = fds[0];
	p->peer = fds[1];
	assert_int_equal(http_call_new(p->loop, &t, &events, p, &p->call, &e), 0);
}

static void close_probe(struct probe *p)
{
	http_call_free(p->call);
	fd_close(p->peer);
	fd_close(p->upgraded_fd);
	buf_done(&p->rest);
	buf_done(&p->body);
	buf_done(&p->sent);
	loop_free(p->loop);
}

static void ask(struct probe *p, const char *method)
{
	struct http1_header host = {VIEW("Host"), VIEW("box")};

	http_call_begin(p->call, view_of(method), VIEW("/a?b"), &host, 1, 0);
	http_call_end(p->call);
}

#define HUNDRED	 "HTTP/1.1 100 Continue\r\n\r\n"
#define HUNDREDS HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED
#define OK	 "HTTP/1.1 200 OK\r\n"

static void believes_well_formed_answers_and_no_others(void **state)
{
	static const struct {
		const char *method, *answer;
		int status;
		const char *body;
		int result;
	} cases[] = {
		{"GET", OK "Content-Length: 3\r\n\r\nabc", 200, "abc", 0},
		{"GET", OK "Content-Length: 3\r\n\r\nabcdef", 200, "abc", 0},
		{"GET", OK "Content-Length: 0\r\n\r\n", 200, "", 0},
		{"GET", OK "\r\nuntil the end", 200, "until the end", 0},
		{"GET", "HTTP/1.0 200 OK\r\n\r\nold", 200, "old", 0},
		{"GET", OK "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
		 200, "abcde", 0},
		{"GET", OK "Transfer-Encoding: chunked\r\n\r\n1;x=y\r\na\r\n0\r\nT: v\r\n\r\n", 200,
		 "a", 0},
		{"HEAD", OK "Content-Length: 500\r\n\r\n", 200, "", 0},
		{"HEAD", OK "Transfer-Encoding: chunked\r\n\r\n", 200, "", 0},
		{"GET", "HTTP/1.1 204 No Content\r\n\r\n", 204, "", 0},
		{"GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 304, "", 0},
		{"GET", HUNDRED OK "Content-Length: 1\r\n\r\nx", 200, "x", 0},
		{"GET", "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n" OK "\r\n", 200, "", 0},
		/* cut short */
		{"GET", "", 0, "", -ECONNRESET},
		{"GET", "HTTP/1.1 20", 0, "", -ECONNRESET},
		{"GET", HUNDRED, 0, "", -ECONNRESET},
		{"GET", OK "Content-Length: 10\r\n\r\nabc", 200, "abc", -ECONNRESET},
		{"GET", OK "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", 200, "abc",
		 -ECONNRESET},
		{"GET", OK "Transfer-Encoding: chunked\r\n\r\n5\r\nabc", 200, "abc", -ECONNRESET},
		/* malformed */
		{"GET", OK "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 200, "", -EPROTO},
		{"GET", OK "Transfer-Encoding: chunked\r\n\r\n1\r\nabc", 200, "a", -EPROTO},
		{"GET", OK "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n", 0, "",
		 -EPROTO},
		{"GET", OK "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc", 0, "", -EPROTO},
		{"GET", OK "Content-Length: -1\r\n\r\n", 0, "", -EPROTO},
		{"GET", OK "X: a\r\n b\r\n\r\n", 0, "", -EPROTO},
		{"GET", "HTTP/1.1 200 OK\nX: a\n\n", 0, "", -EPROTO},
		{"GET", "SSH-2.0-OpenSSH\r\n\r\n", 0, "", -EPROTO},
		{"GET", "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", 0,
		 "", -EPROTO},
		{"GET", HUNDREDS HUNDREDS HUNDREDS OK "\r\n", 0, "", -EPROTO},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct probe p;

		open_pair(&p, 0);
		ask(&p, cases[i].method);
		peer_say(p.peer, cases[i].answer);
		shutdown(p.peer, SHUT_WR);
		spin(p.loop, is_done, &p);
		if (p.result != cases[i].result || p.status != cases[i].status ||
		    !view_is(buf_view(&p.body), cases[i].body))
			fail_msg("case %zu: result %d (%s), status %d, body '%.*s'", i, p.result,
				 p.message, p.status, VIEW_ARG(buf_view(&p.body)));
		assert_int_equal(p.done_n, 1);
		close_probe(&p);
	}
}

static bool at_once(void *arg)
{
	return true;
}

static void understands_an_answer_that_comes_byte_by_byte(void **state)
{
	const char *answer = HUNDRED OK "Transfer-Encoding: chunked\r\n\r\n"
					"3\r\nabc\r\n0\r\n\r\n";
	struct probe p;

	open_pair(&p, 0);
	ask(&p, "GET");
	for (size_t i = 0; answer[i]; i++) {
		peer_send(p.peer, answer + i, 1);
		spin(p.loop, at_once, NULL);
	}
	spin(p.loop, is_done, &p);
	assert_int_equal(p.result, 0);
	assert_int_equal(p.interims, 1);
	assert_true(view_is(buf_view(&p.body), "abc"));
	close_probe(&p);
}

static void writes_requests_with_the_right_framing(void **state)
{
	static const struct {
		const char *method;
		int64_t length;
		const char *pieces[3];
		const char *expected;
	} cases[] = {
		{"GET", 0, {0}, "GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"},
		{"POST",
		 0,
		 {0},
		 "POST /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"},
		{"PUT",
		 5,
		 {"abc", "de"},
		 "PUT /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: "
		 "5\r\n\r\nabcde"},
		{"POST",
		 -1,
		 {"abc", "", "de"},
		 "POST /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: "
		 "chunked\r\n"
		 "\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct http1_header host = {VIEW("Host"), VIEW("h")};
		struct probe p;

		open_pair(&p, 0);
		http_call_begin(p.call, view_of(cases[i].method), VIEW("/x"), &host, 1,
				cases[i].length);
		for (size_t k = 0; k < 3 && cases[i].pieces[k]; k++)
			assert_true(http_call_write(p.call, view_of(cases[i].pieces[k])));
		http_call_end(p.call);
		peer_say(p.peer, OK "Content-Length: 0\r\n\r\n");
		spin(p.loop, is_done, &p);
		assert_int_equal(p.result, 0);
		assert_true(peer_take(p.peer, &p.sent));
		assert_string_equal(buf_str(&p.sent), cases[i].expected);
		close_probe(&p);
	}
}

static void refuses_to_write_what_is_not_http(void **state)
{
	static const struct {
		const char *method, *target, *name, *value;
		int64_t length;
	} cases[] = {
		{"GET", "/a b", "Host", "h", 0},      {"GET", "/a\r\nX: y", "Host", "h", 0},
		{"GET", "", "Host", "h", 0},	      {"G T", "/", "Host", "h", 0},
		{"CONNECT", "h:1", "Host", "h", 0},   {"GET", "/", "Ho st", "h", 0},
		{"GET", "/", "X", "a\r\nEvil: 1", 0}, {"POST", "/", "Host", "short body", 10},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct http1_header h = {view_of(cases[i].name), view_of(cases[i].value)};
		struct probe p;

		open_pair(&p, 0);
		http_call_begin(p.call, view_of(cases[i].method), view_of(cases[i].target), &h, 1,
				cases[i].length);
		http_call_end(p.call);
		assert_int_equal(p.done_n, 0);
		spin(p.loop, is_done, &p);
		assert_true(p.result < 0);
		close_probe(&p);
	}
}

static bool has_body(void *arg)
{
	return ((struct probe *)arg)->body.len > 0;
}

static void gives_no_body_while_paused(void **state)
{
	struct probe p;

	open_pair(&p, 0);
	p.pause_at_body = true;
	ask(&p, "GET");
	peer_say(p.peer, OK "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n");
	spin(p.loop, has_body, &p);
	assert_true(view_is(buf_view(&p.body), "a"));
	p.pause_at_body = false;
	http_call_resume(p.call);
	assert_true(view_is(buf_view(&p.body), "a")); /* never from inside our own call */
	spin(p.loop, is_done, &p);
	assert_true(view_is(buf_view(&p.body), "ab"));
	close_probe(&p);
}

static bool drained_or_take(void *arg)
{
	struct probe *p = arg;

	(void)peer_take(p->peer, &p->sent);
	return p->drained_n > 0;
}

static bool take_all(void *arg)
{
	struct probe *p = arg;

	(void)peer_take(p->peer, &p->sent);
	return p->sent.len >= 4u << 20;
}

static void tells_the_writer_to_stop_and_when_to_go_on(void **state)
{
	static char block[65536];
	struct http1_header host = {VIEW("Host"), VIEW("h")};
	size_t written = 0;
	struct probe p;

	open_pair(&p, 0);
	http_call_begin(p.call, VIEW("PUT"), VIEW("/"), &host, 1, 4 << 20);
	while (written < 4u << 20) {
		written += sizeof(block);
		if (!http_call_write(p.call, view_mem(block, sizeof(block))))
			break;
	}
	assert_true(written < 4u << 20);
	spin(p.loop, drained_or_take, &p);
	for (; written < 4u << 20; written += sizeof(block))
		(void)http_call_write(p.call, view_mem(block, sizeof(block)));
	http_call_end(p.call);
	spin(p.loop, take_all, &p);
	peer_say(p.peer, OK "Content-Length: 0\r\n\r\n");
	spin(p.loop, is_done, &p);
	assert_int_equal(p.result, 0);
	close_probe(&p);
}

static void hears_an_early_answer_of_a_server_that_stopped_reading(void **state)
{
	static char block[65536];
	struct http1_header host = {VIEW("Host"), VIEW("h")};
	struct probe p;

	open_pair(&p, 0);
	peer_say(p.peer, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
	close(p.peer);
	p.peer = -1;
	http_call_begin(p.call, VIEW("PUT"), VIEW("/"), &host, 1, sizeof(block));
	(void)http_call_write(p.call, view_mem(block, sizeof(block)));
	http_call_end(p.call);
	spin(p.loop, is_done, &p);
	assert_int_equal(p.status, 413);
	assert_int_equal(p.result, 0);
	close_probe(&p);
}

static bool is_upgraded(void *arg)
{
	return ((struct probe *)arg)->upgraded_fd >= 0;
}

static void hands_out_an_upgraded_socket_with_what_was_read(void **state)
{
	struct http1_header h[] = {{VIEW("Host"), VIEW("h")}, {VIEW("Upgrade"), VIEW("chat")}};
	struct probe p;

	open_pair(&p, 0);
	p.take_upgrade = true;
	http_call_begin(p.call, VIEW("GET"), VIEW("/"), h, 2, 0);
	http_call_end(p.call);
	peer_say(p.peer, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: chat\r\n"
			 "Connection: Upgrade\r\n\r\nhello");
	spin(p.loop, is_upgraded, &p);
	assert_int_equal(p.done_n, 0);
	assert_true(view_is(buf_view(&p.rest), "hello"));
	peer_say(p.upgraded_fd, "raw");
	(void)peer_take(p.peer, &p.sent);
	assert_true(view_ends(buf_view(&p.sent), VIEW("Connection: Upgrade\r\n\r\nraw")));
	close_probe(&p);
}

static bool is_freed(void *arg)
{
	return ((struct probe *)arg)->call == NULL;
}

static void may_be_freed_in_its_own_callbacks(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct probe p;

		open_pair(&p, 0);
		p.free_at_head = i == 0;
		p.free_at_body = i == 1;
		ask(&p, "GET");
		peer_say(p.peer, OK "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n");
		spin(p.loop, is_freed, &p);
		assert_int_equal(p.done_n, 0);
		close_probe(&p);
	}
}

static void gives_a_silent_server_up(void **state)
{
	struct probe p;

	open_pair(&p, 20);
	ask(&p, "GET");
	spin(p.loop, is_done, &p);
	assert_int_equal(p.result, -ETIMEDOUT);
	close_probe(&p);
}

static void gives_an_endless_head_up(void **state)
{
	struct probe p;

	open_pair(&p, 0);
	ask(&p, "GET");
	peer_say(p.peer, OK);
	while (!p.done_n) {
		char line[1024];

		memset(line, 'x', sizeof(line));
		memcpy(line, "X: ", 3);
		memcpy(line + sizeof(line) - 2, "\r\n", 2);
		peer_send(p.peer, line, sizeof(line));
		spin(p.loop, at_once, NULL);
	}
	assert_true(p.result == -E2BIG || p.result == -EPROTO);
	close_probe(&p);
}

static int listen_tcp(uint16_t *ret_port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &(socklen_t){sizeof(a)}), 0);
	*ret_port = ntohs(a.sin_port);
	return fd;
}

static void connects_to_an_address_and_says_when_nobody_listens(void **state)
{
	struct http_target t = {.ip = "127.0.0.1", .fd = -1, .connect_timeout_ms = 30000};
	struct err e = ERR_NONE;
	struct probe p;
	int fd = listen_tcp(&t.port);

	open_probe(&p);
	assert_int_equal(http_call_new(p.loop, &t, &events, &p, &p.call, &e), 0);
	ask(&p, "GET");
	spin(p.loop, is_done, &p);
	assert_int_equal(p.result, -ECONNREFUSED);

	assert_int_equal(listen(fd, 1), 0);
	p.done_n = 0;
	assert_int_equal(http_call_new(p.loop, &t, &events, &p, &p.call, &e), 0);
	ask(&p, "GET");
	p.peer = accept(fd, NULL, NULL);
	peer_say(p.peer, OK "Content-Length: 2\r\n\r\nhi");
	spin(p.loop, is_done, &p);
	assert_int_equal(p.result, 0);
	assert_true(view_is(buf_view(&p.body), "hi"));
	close(fd);
	close_probe(&p);
}

static bool is_accepted(void *arg)
{
	struct probe *p = arg;

	p->peer = accept(p->listener, NULL, NULL);
	return p->peer >= 0;
}

static void connects_to_a_unix_socket_even_when_its_queue_is_full(void **state)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct http_target t = {.unix_path = a.sun_path, .fd = -1};
	char dir[] = "/tmp/http_client.XXXXXX";
	struct err e = ERR_NONE;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int first = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct probe p;

	open_probe(&p);
	assert_non_null(mkdtemp(dir));
	snprintf(a.sun_path, sizeof(a.sun_path), "%s/s", dir);
	assert_true(http_call_new(p.loop, &t, &events, &p, &p.call, &e) == -ENOENT);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 0), 0);
	assert_int_equal(connect(first, (struct sockaddr *)&a, sizeof(a)), 0);

	assert_int_equal(http_call_new(p.loop, &t, &events, &p, &p.call, &e), 0);
	ask(&p, "GET");
	spin(p.loop, at_once, NULL);
	close(accept(fd, NULL, NULL));
	close(first);
	p.listener = fd;
	spin(p.loop, is_accepted, &p);
	peer_say(p.peer, OK "Content-Length: 2\r\n\r\nhi");
	spin(p.loop, is_done, &p);
	assert_int_equal(p.result, 0);
	close(fd);
	unlink(a.sun_path);
	rmdir(dir);
	close_probe(&p);
}

static void refuses_addresses_that_are_none(void **state)
{
	struct http_target t = {.ip = "localhost", .fd = -1};
	struct err e = ERR_NONE;
	struct probe p;

	open_probe(&p);
	assert_int_equal(http_call_new(p.loop, &t, &events, &p, &p.call, &e), -EINVAL);
	assert_string_equal(e.msg, "'localhost' is not an IP address");
	close_probe(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(believes_well_formed_answers_and_no_others),
		cmocka_unit_test(understands_an_answer_that_comes_byte_by_byte),
		cmocka_unit_test(writes_requests_with_the_right_framing),
		cmocka_unit_test(refuses_to_write_what_is_not_http),
		cmocka_unit_test(gives_no_body_while_paused),
		cmocka_unit_test(tells_the_writer_to_stop_and_when_to_go_on),
		cmocka_unit_test(hears_an_early_answer_of_a_server_that_stopped_reading),
		cmocka_unit_test(hands_out_an_upgraded_socket_with_what_was_read),
		cmocka_unit_test(may_be_freed_in_its_own_callbacks),
		cmocka_unit_test(gives_a_silent_server_up),
		cmocka_unit_test(gives_an_endless_head_up),
		cmocka_unit_test(connects_to_an_address_and_says_when_nobody_listens),
		cmocka_unit_test(connects_to_a_unix_socket_even_when_its_queue_is_full),
		cmocka_unit_test(refuses_addresses_that_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
