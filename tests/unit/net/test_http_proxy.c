/*
 * test_http_proxy.c - a server that answers with what another one says.
 *
 * The client and the upstream are played by hand on real sockets; the proxy runs between them.
 */
#include "net_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>

#include "base/arena.h"
#include "base/fd.h"
#include "net/http_proxy.h"
#include "net/http_server.h"

struct bench {
	struct loop *loop;
	struct http_server *server;
	struct http_proxies *proxies;
	int listener; /* of the upstream */
	uint16_t port;
	int client, upstream;
	struct buf got_client, got_upstream;
	bool client_ended, upstream_ended;
	const char *wait_client, *wait_upstream;
	bool rewrites, hides;
	const char *keep_as; /* or NULL */
	int stale;	     /* times that a kept connection had gone */
	size_t want_client, want_upstream, sent;
	int failures;
};

static void ask(struct bench *b, struct http_exchange *x, bool fresh);

static void on_failed(struct http_exchange *x, int code, const char *message)
{
	struct bench *b = http_user(x);

	assert_true(code < 0 && message[0]);
	if (code == -ESTALE) {
		b->stale++;
		ask(b, x, /* fresh= */ true);
		return;
	}
	http_reply(x, 502, "text/plain", VIEW("Bad Gateway"));
}

static struct view rewrite(struct http_exchange *x, struct view name, struct view value)
{
	if (view_iis(name, "Set-Cookie"))
		return VIEW_NONE;
	return view_of(arena_printf(http_arena(x), "moved:" VIEW_FMT, VIEW_ARG(value)));
}

static void ask(struct bench *b, struct http_exchange *x, bool fresh)
{
	static const char *const drop[] = {"X-Drop", NULL};
	static const struct http1_header add[] = {{VIEW("X-Add"), VIEW("1")}};
	struct http_proxy_options o = {
		.target = {.ip = "127.0.0.1", .port = b->port, .fd = -1},
		.path = VIEW("/there?q"),
		.drop_headers = drop,
		.add_headers = add,
		.add_headers_n = 1,
		.rewrite = b->rewrites ? rewrite : NULL,
		.hides_server = b->hides,
		.keep_as = view_of(b->keep_as),
		.failed = on_failed,
	};

	if (fresh || !http_proxy_again(b->loop, b->proxies, x, &o))
		http_proxy(b->loop, b->proxies, x, &o);
}

static void handle(struct http_exchange *x, void *arg)
{
	http_set_user(x, arg);
	ask(arg, x, /* fresh= */ false);
}

static int connect_to(uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				.sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void open_bench(struct bench *b, bool upstream_listens)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct err e = ERR_NONE;

	*b = (struct bench){.upstream = -1};
	buf_init(&b->got_client, 64 << 20);
	buf_init(&b->got_upstream, 64 << 20);
	assert_int_equal(loop_new(&b->loop, &e), 0);
	b->proxies = http_proxies_new();
	b->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(b->listener, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(getsockname(b->listener, (struct sockaddr *)&a, &(socklen_t){sizeof(a)}),
			 0);
	b->port = ntohs(a.sin_port);
	if (upstream_listens)
		assert_int_equal(listen(b->listener, 8), 0);
	assert_int_equal(http_server_new(b->loop, &http_limits_default, handle, b, &b->server, &e),
			 0);
	assert_int_equal(http_server_listen_tcp(b->server, "127.0.0.1", 0, &e), 0);
	b->client = connect_to(http_server_port(b->server));
}

static void close_bench(struct bench *b)
{
	http_server_free(b->server);
	http_proxies_free(b->proxies);
	fd_close(b->client);
	fd_close(b->upstream);
	fd_close(b->listener);
	buf_done(&b->got_client);
	buf_done(&b->got_upstream);
	loop_free(b->loop);
}

static bool holds(struct buf *b, const char *text)
{
	struct view v = buf_view(b);

	return view_find_view(v, view_of(text)) < v.len;
}

/* What is awaited has come on both sides. */
static bool arrived(void *arg)
{
	struct bench *b = arg;

	if (b->upstream < 0)
		b->upstream = accept4(b->listener, NULL, NULL, SOCK_CLOEXEC);
	if (b->upstream >= 0)
		b->upstream_ended = peer_take(b->upstream, &b->got_upstream);
	if (b->client >= 0)
		b->client_ended = peer_take(b->client, &b->got_client);
	return (!b->wait_client || holds(&b->got_client, b->wait_client)) &&
	       (!b->wait_upstream || holds(&b->got_upstream, b->wait_upstream)) &&
	       b->got_client.len >= b->want_client && b->got_upstream.len >= b->want_upstream;
}

static bool client_ended(void *arg)
{
	(void)arrived(arg);
	return ((struct bench *)arg)->client_ended;
}

static bool upstream_ended(void *arg)
{
	(void)arrived(arg);
	return ((struct bench *)arg)->upstream_ended;
}

static void await_client(struct bench *b, const char *text)
{
	b->wait_client = text;
	b->wait_upstream = NULL;
	spin(b->loop, arrived, b);
}

static void await_upstream(struct bench *b, const char *text)
{
	b->wait_client = NULL;
	b->wait_upstream = text;
	spin(b->loop, arrived, b);
}

static void forwards_what_is_not_for_the_hop_alone(void **state)
{
	struct bench b;

	open_bench(&b, true);
	peer_say(b.client, "GET /here HTTP/1.1\r\nHost: box:80\r\nX-Keep: a\r\nX-Drop: b\r\n"
			   "Connection: keep-alive, X-Hop\r\nX-Hop: c\r\nTE: trailers\r\n"
			   "Proxy-Authorization: d\r\nX-Keep: e\r\n\r\n");
	await_upstream(&b, "\r\n\r\n");
	assert_string_equal(buf_str(&b.got_upstream),
			    "GET /there?q HTTP/1.1\r\nHost: box:80\r\nX-Keep: a\r\nX-Keep: e\r\n"
			    "X-Add: 1\r\nConnection: close\r\n\r\n");
	peer_say(b.upstream, "HTTP/1.1 201 Created\r\nContent-Length: 2\r\nSet-Cookie: a\r\n"
			     "Set-Cookie: b\r\nConnection: close, X-Hop\r\nX-Hop: f\r\n"
			     "Keep-Alive: 5\r\n\r\nok");
	await_client(&b, "\r\n\r\nok");
	assert_true(holds(&b.got_client, "HTTP/1.1 201 "));
	assert_true(holds(&b.got_client, "Set-Cookie: a\r\n"));
	assert_true(holds(&b.got_client, "Set-Cookie: b\r\n"));
	assert_true(holds(&b.got_client, "Content-Length: 2\r\n"));
	assert_false(holds(&b.got_client, "X-Hop"));
	assert_false(holds(&b.got_client, "Keep-Alive: 5"));
	/* The client's connection lives on. */
	buf_clear(&b.got_client);
	close(b.upstream);
	b.upstream = -1;
	peer_say(b.client, "GET /again HTTP/1.1\r\nHost: h\r\n\r\n");
	await_upstream(&b, "Host: h\r\n");
	close_bench(&b);
}

static void answers_of_every_framing_arrive(void **state)
{
	static const struct {
		const char *method, *answer, *expected;
	} cases[] = {
		{"GET",
		 "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		 "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
		 "0\r\n\r\n"},
		{"GET", "HTTP/1.1 200 OK\r\n\r\nuntil the end", "0\r\n\r\n"},
		{"GET", "HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 204"},
		{"GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\nETag: x\r\n\r\n",
		 "ETag: x\r\n"},
		{"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", "Content-Length: 10\r\n"},
		{"GET",
		 "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n",
		 "HTTP/1.1 404"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char request[128];
		struct bench b;

		open_bench(&b, true);
		snprintf(request, sizeof(request), "%s / HTTP/1.1\r\nHost: h\r\n\r\n",
			 cases[i].method);
		peer_say(b.client, request);
		await_upstream(&b, "\r\n\r\n");
		peer_say(b.upstream, cases[i].answer);
		shutdown(b.upstream, SHUT_WR);
		await_client(&b, cases[i].expected);
		await_client(&b, "\r\n\r\n");
		/* Whole: the connection takes the next request. */
		close(b.upstream);
		b.upstream = -1;
		buf_clear(&b.got_upstream);
		peer_say(b.client, "GET / HTTP/1.1\r\nHost: next\r\n\r\n");
		await_upstream(&b, "Host: next\r\n");
		close_bench(&b);
	}
}

static void headers_that_name_places_are_rewritten(void **state)
{
	for (int on = 0; on < 2; on++) {
		struct bench b;

		open_bench(&b, true);
		b.rewrites = b.hides = on;
		peer_say(b.client, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
		await_upstream(&b, "\r\n\r\n");
		peer_say(b.upstream, "HTTP/1.1 302 Found\r\nServer: theirs\r\nlocation: /x\r\n"
				     "Set-Cookie: a=b\r\nContent-Length: 3\r\n\r\nend");
		await_client(&b, "\r\n\r\nend");
		assert_int_equal(holds(&b.got_client, "location: moved:/x\r\n"), on);
		assert_int_equal(holds(&b.got_client, "Set-Cookie"), !on);
		assert_int_equal(holds(&b.got_client, "Server: theirs"), !on);
		close_bench(&b);
	}
}

/* ---- kept connections ---- */

#define ASK   "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
#define EMPTY "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"

/* One request and its answer on the connection that the upstream has. */
static void exchange_one(struct bench *b, const char *request, const char *answer, const char *end)
{
	buf_clear(&b->got_client);
	buf_clear(&b->got_upstream);
	peer_say(b->client, request);
	await_upstream(b, "\r\n\r\n");
	peer_say(b->upstream, answer);
	await_client(b, end);
}

static bool nobody_else_connects(const struct bench *b)
{
	int fd = accept4(b->listener, NULL, NULL, SOCK_CLOEXEC);

	fd_close(fd);
	return fd < 0;
}

static void a_connection_is_used_again(void **state)
{
	static const char post[] = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab";
	struct bench b;

	open_bench(&b, true);
	b.keep_as = "here";
	exchange_one(&b, ASK, EMPTY "ok", "ok");
	assert_false(holds(&b.got_upstream, "Connection:"));
	exchange_one(&b, ASK, EMPTY "ko", "ko");
	exchange_one(&b, post, EMPTY "xx", "xx");
	exchange_one(&b, ASK,
		     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nyy\r\n0\r\n\r\n",
		     "0\r\n\r\n");
	exchange_one(&b, "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n", EMPTY, "\r\n\r\n");
	exchange_one(&b, ASK, "HTTP/1.1 304 Not Modified\r\n\r\n", "\r\n\r\n");
	exchange_one(&b, ASK, EMPTY "zz", "zz");
	assert_true(nobody_else_connects(&b));
	/* Another place has other connections. */
	b.keep_as = "there";
	fd_close(take_fd(b.upstream));
	exchange_one(&b, ASK, EMPTY "ok", "ok");
	close_bench(&b);
}

static void what_cannot_be_used_again_is_closed(void **state)
{
	static const struct {
		const char *request, *answer, *end;
	} cases[] = {
		{ASK, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", "ok"},
		{ASK, "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok"},
		{ASK, EMPTY "ok and more", "ok"},
		/* An answer before the request has ended. */
		{"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nab", EMPTY "ok", "ok"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bench b;

		open_bench(&b, true);
		b.keep_as = "here";
		exchange_one(&b, cases[i].request, cases[i].answer, cases[i].end);
		spin(b.loop, upstream_ended, &b);
		close_bench(&b);
	}
}

static void a_connection_that_ended_while_it_rested_is_forgotten(void **state)
{
	struct bench b;

	open_bench(&b, true);
	b.keep_as = "here";
	exchange_one(&b, ASK, EMPTY "ok", "ok");
	shutdown(b.upstream, SHUT_WR);
	spin(b.loop, upstream_ended, &b);
	fd_close(take_fd(b.upstream));
	exchange_one(&b, ASK, EMPTY "ko", "ko");
	assert_int_equal(b.stale, 0);
	close_bench(&b);
}

static void a_connection_that_nobody_needs_is_closed(void **state)
{
	struct bench b;

	open_bench(&b, true);
	b.keep_as = "here";
	exchange_one(&b, ASK, EMPTY "ok", "ok");
	spin(b.loop, upstream_ended, &b);
	close_bench(&b);
}

static bool is_stale(void *arg)
{
	struct bench *b = arg;

	if (b->upstream >= 0 && peer_take(b->upstream, &b->got_upstream))
		b->upstream_ended = true;
	return b->stale > 0;
}

/* The upstream closes just when the request arrives: the client does not notice. */
static void a_request_is_asked_again_if_its_connection_had_gone(void **state)
{
	struct bench b;

	open_bench(&b, true);
	b.keep_as = "here";
	exchange_one(&b, ASK, EMPTY "ok", "ok");
	buf_clear(&b.got_client);
	buf_clear(&b.got_upstream);
	peer_say(b.client, ASK);
	await_upstream(&b, "\r\n\r\n");
	fd_close(take_fd(b.upstream));
	spin(b.loop, is_stale, &b);
	buf_clear(&b.got_upstream);
	await_upstream(&b, "\r\n\r\n");
	peer_say(b.upstream, EMPTY "ko");
	await_client(&b, "ko");
	assert_int_equal(b.stale, 1);

	/* What may not be asked twice is not. */
	buf_clear(&b.got_client);
	buf_clear(&b.got_upstream);
	peer_say(b.client, "DELETE / HTTP/1.1\r\nHost: h\r\n\r\n");
	await_upstream(&b, "\r\n\r\n");
	fd_close(take_fd(b.upstream));
	await_client(&b, "Bad Gateway");
	assert_int_equal(b.stale, 1);
	close_bench(&b);
}

static void request_bodies_arrive_sized_and_chunked(void **state)
{
	static const struct {
		const char *request, *expected;
	} cases[] = {
		{"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
		 "Content-Length: 5\r\n\r\nhello"},
		{"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
		 "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
		 "\r\n0\r\n\r\n"},
		{"DELETE / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
		 "Connection: close\r\n\r\n"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bench b;

		open_bench(&b, true);
		peer_say(b.client, cases[i].request);
		await_upstream(&b, cases[i].expected);
		peer_say(b.upstream, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
		await_client(&b, "\r\n\r\nok");
		close_bench(&b);
	}
}

static void an_answer_that_breaks_off_is_broken_off(void **state)
{
	static const char *const answers[] = {
		"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\nzz\r\n",
	};

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct bench b;

		open_bench(&b, true);
		peer_say(b.client, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
		await_upstream(&b, "\r\n\r\n");
		peer_say(b.upstream, answers[i]);
		shutdown(b.upstream, SHUT_RDWR);
		spin(b.loop, client_ended, &b);
		assert_true(holds(&b.got_client, "part"));
		assert_false(holds(&b.got_client, "\r\n0\r\n\r\n"));
		close_bench(&b);
	}
}

static void an_upstream_without_an_answer_is_a_bad_gateway(void **state)
{
	static const char *const answers[] = {NULL, "", "HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
					      "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"};

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct bench b;

		open_bench(&b, answers[i] != NULL);
		peer_say(b.client, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
		if (answers[i]) {
			await_upstream(&b, "\r\n\r\n");
			peer_say(b.upstream, answers[i]);
			shutdown(b.upstream, SHUT_RDWR);
		}
		await_client(&b, "Bad Gateway");
		assert_true(holds(&b.got_client, "HTTP/1.1 502 "));
		close_bench(&b);
	}
}

static void an_upgrade_becomes_a_relay(void **state)
{
	struct bench b;

	open_bench(&b, true);
	peer_say(b.client, "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: chat\r\n"
			   "\r\nearly");
	await_upstream(&b, "\r\n\r\n");
	assert_true(holds(&b.got_upstream, "Upgrade: chat\r\n"));
	assert_true(holds(&b.got_upstream, "Connection: Upgrade\r\n"));
	peer_say(b.upstream, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
			     "Upgrade: chat\r\nX-More: y\r\n\r\nwelcome");
	await_client(&b, "\r\n\r\nwelcome");
	assert_true(holds(&b.got_client, "HTTP/1.1 101 "));
	assert_true(holds(&b.got_client, "Upgrade: chat\r\n"));
	assert_true(holds(&b.got_client, "X-More: y\r\n"));
	await_upstream(&b, "\r\n\r\nearly");
	peer_say(b.client, "question");
	await_upstream(&b, "question");
	peer_say(b.upstream, "answer");
	await_client(&b, "answer");
	shutdown(b.client, SHUT_WR);
	spin(b.loop, upstream_ended, &b);
	shutdown(b.upstream, SHUT_WR);
	spin(b.loop, client_ended, &b);
	close_bench(&b);
}

static void a_refused_upgrade_is_an_ordinary_answer(void **state)
{
	struct bench b;

	open_bench(&b, true);
	peer_say(b.client, "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: chat\r\n"
			   "\r\n");
	await_upstream(&b, "\r\n\r\n");
	peer_say(b.upstream, "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
	await_client(&b, "\r\n\r\nno");
	assert_true(holds(&b.got_client, "HTTP/1.1 403 "));
	close_bench(&b);
}

static void the_upstream_decides_about_a_body_that_waits(void **state)
{
	struct bench b;

	open_bench(&b, true);
	peer_say(b.client, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n"
			   "Expect: 100-continue\r\n\r\n");
	await_upstream(&b, "\r\n\r\n");
	assert_true(holds(&b.got_upstream, "Expect: 100-continue\r\n"));
	peer_say(b.upstream, "HTTP/1.1 100 Continue\r\n\r\n");
	await_client(&b, "HTTP/1.1 100 ");
	peer_say(b.client, "body");
	await_upstream(&b, "\r\n\r\nbody");
	peer_say(b.upstream, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	await_client(&b, "\r\n\r\nok");
	close_bench(&b);

	open_bench(&b, true);
	peer_say(b.client, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n"
			   "Expect: 100-continue\r\n\r\n");
	await_upstream(&b, "\r\n\r\n");
	peer_say(b.upstream, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
	await_client(&b, "\r\n\r\nno");
	assert_false(holds(&b.got_client, "100 Continue"));
	close_bench(&b);
}

static void a_client_that_leaves_takes_the_upstream_along(void **state)
{
	struct bench b;

	open_bench(&b, true);
	peer_say(b.client, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
	await_upstream(&b, "\r\n\r\n");
	/* A reset: an end of input alone could also be a client that waits for its answer. */
	setsockopt(b.client, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1},
		   sizeof(struct linger));
	close(b.client);
	b.client = -1;
	spin(b.loop, upstream_ended, &b);
	close_bench(&b);
}

#define BIG (4u << 20)

static bool pump_upload(void *arg)
{
	static const char block[65536];
	struct bench *b = arg;
	ssize_t n = 1;

	while (b->sent < BIG && n > 0) {
		n = send(b->client, block, MIN(sizeof(block), BIG - b->sent),
			 MSG_DONTWAIT | MSG_NOSIGNAL);
		b->sent += n > 0 ? (size_t)n : 0;
	}
	return arrived(b);
}

static bool pump_download(void *arg)
{
	static const char block[65536];
	struct bench *b = arg;
	ssize_t n = 1;

	while (b->sent < BIG && n > 0) {
		n = send(b->upstream, block, MIN(sizeof(block), BIG - b->sent),
			 MSG_DONTWAIT | MSG_NOSIGNAL);
		b->sent += n > 0 ? (size_t)n : 0;
	}
	return arrived(b);
}

static void large_bodies_pass_both_ways(void **state)
{
	char head[128];
	struct bench b;

	open_bench(&b, true);
	snprintf(head, sizeof(head), "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: %u\r\n\r\n",
		 BIG);
	peer_say(b.client, head);
	b.want_upstream = BIG;
	spin(b.loop, pump_upload, &b);
	b.want_upstream = 0;
	b.sent = 0;
	snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %u\r\n\r\n", BIG);
	peer_say(b.upstream, head);
	b.want_client = BIG;
	spin(b.loop, pump_download, &b);
	close_bench(&b);
}

static bool is_stuck(void *arg)
{
	static const char block[65536];
	struct bench *b = arg;
	ssize_t n = send(b->upstream, block, sizeof(block), MSG_DONTWAIT | MSG_NOSIGNAL);

	b->sent += n > 0 ? (size_t)n : 0;
	b->failures = n > 0 ? 0 : b->failures + 1;
	assert_true(b->sent < 64u << 20);
	return b->failures > 50;
}

static void a_client_that_does_not_read_stops_the_upstream(void **state)
{
	struct bench b;

	open_bench(&b, true);
	peer_say(b.client, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
	await_upstream(&b, "\r\n\r\n");
	peer_say(b.upstream, "HTTP/1.1 200 OK\r\n\r\n");
	spin(b.loop, is_stuck, &b);
	close_bench(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forwards_what_is_not_for_the_hop_alone),
		cmocka_unit_test(answers_of_every_framing_arrive),
		cmocka_unit_test(headers_that_name_places_are_rewritten),
		cmocka_unit_test(a_connection_is_used_again),
		cmocka_unit_test(what_cannot_be_used_again_is_closed),
		cmocka_unit_test(a_connection_that_ended_while_it_rested_is_forgotten),
		cmocka_unit_test(a_connection_that_nobody_needs_is_closed),
		cmocka_unit_test(a_request_is_asked_again_if_its_connection_had_gone),
		cmocka_unit_test(request_bodies_arrive_sized_and_chunked),
		cmocka_unit_test(an_answer_that_breaks_off_is_broken_off),
		cmocka_unit_test(an_upstream_without_an_answer_is_a_bad_gateway),
		cmocka_unit_test(an_upgrade_becomes_a_relay),
		cmocka_unit_test(a_refused_upgrade_is_an_ordinary_answer),
		cmocka_unit_test(the_upstream_decides_about_a_body_that_waits),
		cmocka_unit_test(a_client_that_leaves_takes_the_upstream_along),
		cmocka_unit_test(large_bodies_pass_both_ways),
		cmocka_unit_test(a_client_that_does_not_read_stops_the_upstream),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
