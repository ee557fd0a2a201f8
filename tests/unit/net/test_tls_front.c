/*
 * test_tls_front.c - an HTTP server behind TLS, and certificates on their way to it.
 */
#include "tls_certs.h"

#include <poll.h>

#include "base/fd.h"
#include "base/mem.h"
#include "net/connect.h"
#include "net/http_server.h"
#include "net/tls.h"
#include "net/tls_files.h"
#include "net/tls_front.h"

#define HOUR 3600

static struct test_cert authority, first, second;
static char dir[64], ca_file[96], cert_file[96], key_file[96];

/* ---- a server and a client ---- */

struct stage {
	struct loop *loop;
	struct tls_server *tls;
	struct http_server *http;
	struct tls_front *front;
	struct tls_client *client;
	struct tls_bridges *bridges;
	struct connect *connect;
	struct http_exchange *held; /* its answer is not given yet */
	char scheme[8], peer[64];
	int requests;
	int plain; /* the client's end; -2 = not told yet */
	struct buf got;
	bool ended, drained;
};

static void handle(struct http_exchange *x, void *arg)
{
	struct stage *s = arg;

	s->requests++;
	snprintf(s->scheme, sizeof(s->scheme), "%s", http_scheme(x));
	snprintf(s->peer, sizeof(s->peer), VIEW_FMT, VIEW_ARG(http_peer(x)));
	if (view_is(http_path(x), "/held"))
		s->held = x;
	else
		http_reply(x, 200, "text/plain", VIEW("hello"));
}

static void open_stage(struct stage *s, size_t max)
{
	struct err e = ERR_NONE;

	*s = (struct stage){.plain = -2};
	buf_init(&s->got, 65536);
	assert_int_equal(loop_new(&s->loop, &e), 0);
	assert_int_equal(
		tls_server_new_pem(view_of(first.cert_pem), view_of(first.key_pem), &s->tls, &e),
		0);
	assert_int_equal(tls_client_new(ca_file, &s->client, &e), 0);
	assert_int_equal(http_server_new(s->loop, NULL, handle, s, &s->http, &e), 0);
	s->front = tls_front_new(s->loop, s->http, s->tls, max);
	s->bridges = tls_bridges_new(s->loop);
	assert_int_equal(http_server_listen_tcp(s->http, "127.0.0.1", 0, &e), 0);
}

static void close_stage(struct stage *s)
{
	http_server_free(s->http);
	tls_front_free(s->front);
	tls_server_free(s->tls);
	connect_free(s->connect);
	tls_bridges_free(s->bridges);
	tls_client_free(s->client);
	fd_close(s->plain < 0 ? -1 : s->plain);
	buf_done(&s->got);
	loop_free(s->loop);
}

static void shaken(void *arg, int fd, const struct err *e)
{
	((struct stage *)arg)->plain = fd;
}

static void connected(void *arg, int fd, const struct err *e)
{
	struct stage *s = arg;

	connect_free(take_ptr(s->connect));
	assert_true(fd >= 0);
	(void)tls_connect(s->bridges, s->client, fd, "good.test", shaken, s);
}

static bool is_shaken(void *arg)
{
	return ((struct stage *)arg)->plain != -2;
}

static void connect_client(struct stage *s)
{
	struct connect_to to = {.ip = "127.0.0.1", .port = http_server_port(s->http)};
	struct err e = ERR_NONE;

	s->plain = -2;
	assert_int_equal(connect_new(s->loop, &to, connected, s, &s->connect, &e), 0);
	spin(s->loop, is_shaken, s);
}

static bool answered(void *arg)
{
	struct stage *s = arg;

	s->ended = peer_take(s->plain, &s->got);
	return view_find_view(buf_view(&s->got), VIEW("hello")) < s->got.len;
}

static bool asked(void *arg)
{
	return ((struct stage *)arg)->requests > 0;
}

static void serves_and_knows_who_asks(void **state)
{
	struct stage s;

	open_stage(&s, 10);
	connect_client(&s);
	peer_say(s.plain, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
	spin(s.loop, answered, &s);
	assert_string_equal(s.scheme, "https");
	assert_string_equal(s.peer, "127.0.0.1");
	buf_clear(&s.got);
	peer_say(s.plain, "GET /again HTTP/1.1\r\nHost: h\r\n\r\n");
	spin(s.loop, answered, &s);
	assert_int_equal(s.requests, 2);
	assert_false(s.ended);
	close_stage(&s);
}

static void closes_whom_it_has_no_room_for(void **state)
{
	struct stage s;

	open_stage(&s, 0);
	connect_client(&s);
	assert_int_equal(s.plain, -1);
	assert_int_equal(s.requests, 0);
	close_stage(&s);
}

static void is_drained(void *arg)
{
	((struct stage *)arg)->drained = true;
}

static void http_drained(void *arg)
{
	struct stage *s = arg;

	tls_front_drain(s->front, 20000, is_drained, s);
}

static bool all_is_said(void *arg)
{
	struct stage *s = arg;

	s->ended = s->ended || peer_take(s->plain, &s->got);
	return s->drained && s->ended;
}

/* The last answer reaches its client before everything is over. */
static void drains_what_was_said(void **state)
{
	struct stage s;

	open_stage(&s, 10);
	connect_client(&s);
	peer_say(s.plain, "GET /held HTTP/1.1\r\nHost: h\r\n\r\n");
	spin(s.loop, asked, &s);
	http_server_drain(s.http, 20000, http_drained, &s);
	http_reply(s.held, 200, "text/plain", VIEW("hello"));
	spin(s.loop, all_is_said, &s);
	assert_true(answered(&s));
	close_stage(&s);
}

static void drains_at_once_when_nobody_is_there(void **state)
{
	struct stage s;

	open_stage(&s, 10);
	s.ended = true;
	http_server_drain(s.http, 20000, http_drained, &s);
	spin(s.loop, all_is_said, &s);
	close_stage(&s);
}

/* ---- certificates on their way ---- */

static void passes_good_files_on_and_keeps_them(void **state)
{
	struct tls_server *s = NULL;
	struct tls_files *f = NULL;
	struct err e = ERR_NONE;
	int64_t until;

	write_text(cert_file, first.cert_pem);
	write_text(key_file, first.key_pem);
	assert_int_equal(tls_files_new(cert_file, key_file, &f, &e), 0);
	assert_int_equal(tls_files_use(tls_files_text(f), &s, &e), 0);
	until = tls_server_until(s);
	assert_int_equal(tls_files_until(f), until);
	assert_true(tls_files_look(f, false, &e) >= 0);
	assert_int_equal(tls_files_look(f, true, &e), 1);
	write_text(cert_file, second.cert_pem);
	assert_true(tls_files_look(f, false, &e) < 0);
	assert_true(e.msg[0] != '\0');
	assert_int_equal(tls_files_until(f), until);
	assert_int_equal(tls_files_use(tls_files_text(f), &s, &e), 0);
	assert_int_equal(tls_server_until(s), until);
	write_text(key_file, second.key_pem);
	assert_int_equal(tls_files_look(f, false, &e), 1);
	assert_int_equal(tls_files_use(tls_files_text(f), &s, &e), 0);
	assert_true(tls_server_until(s) > until);
	tls_server_free(s);
	tls_files_free(f);
}

static bool stirs(struct tls_files *f)
{
	struct pollfd p = {.fd = tls_files_watch(f), .events = POLLIN};

	if (poll(&p, 1, 30000) != 1)
		return false;
	tls_files_stirred(f);
	return tls_files_due_us(f) > 0;
}

static void notices_what_happens_to_files(void **state)
{
	struct tls_files *f = NULL;
	struct err e = ERR_NONE;
	char fresh[128];

	write_text(cert_file, first.cert_pem);
	write_text(key_file, first.key_pem);
	assert_int_equal(tls_files_new(cert_file, key_file, &f, &e), 0);
	assert_int_equal(tls_files_due_us(f), 0);
	snprintf(fresh, sizeof(fresh), "%s/fresh", dir);
	write_text(fresh, first.cert_pem);
	assert_true(stirs(f));
	assert_true(tls_files_look(f, false, &e) >= 0); /* it is not one of them */
	assert_int_equal(tls_files_due_us(f), 0);
	assert_int_equal(rename(fresh, cert_file), 0);
	assert_true(stirs(f));
	assert_int_equal(tls_files_look(f, false, &e), 1);
	tls_files_free(f);
}

static void uses_nothing_that_could_change(void **state)
{
	struct tls_server *s = NULL;
	struct err e = ERR_NONE;
	FILE *file = tmpfile();

	assert_non_null(file);
	assert_true(tls_files_use(fileno(file), &s, &e) < 0);
	assert_null(s);
	assert_true(tls_files_use(-1, &s, &e) < 0);
	(void)fclose(file);
}

static int make_certificates(void **state)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%.40s/tls.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(dir));
	snprintf(ca_file, sizeof(ca_file), "%s/ca.pem", dir);
	snprintf(cert_file, sizeof(cert_file), "%s/cert.pem", dir);
	snprintf(key_file, sizeof(key_file), "%s/key.pem", dir);
	authority = test_cert_new(NULL, NULL, HOUR);
	first = test_cert_new("DNS:good.test", &authority, HOUR);
	second = test_cert_new("DNS:good.test", &authority, 2 * HOUR);
	write_text(ca_file, authority.cert_pem);
	return 0;
}

static int remove_certificates(void **state)
{
	(void)unlink(ca_file);
	(void)unlink(cert_file);
	(void)unlink(key_file);
	(void)rmdir(dir);
	test_cert_done(&authority);
	test_cert_done(&first);
	test_cert_done(&second);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(serves_and_knows_who_asks),
		cmocka_unit_test(closes_whom_it_has_no_room_for),
		cmocka_unit_test(drains_what_was_said),
		cmocka_unit_test(drains_at_once_when_nobody_is_there),
		cmocka_unit_test(passes_good_files_on_and_keeps_them),
		cmocka_unit_test(notices_what_happens_to_files),
		cmocka_unit_test(uses_nothing_that_could_change),
	};

	return cmocka_run_group_tests(tests, make_certificates, remove_certificates);
}
