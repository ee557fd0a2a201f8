/*
 * test_tls.c - bridges: handshakes and their failures, bytes both ways, ends, back-pressure.
 */
#include "tls_certs.h"

#include <openssl/ssl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/mem.h"
#include "net/tls.h"

#define BIG  (6u << 20)
#define HOUR 3600

/* What all tests share: an authority and a good certificate. */
static struct test_cert authority, leaf;
static char dir[64], ca_file[96], cert_file[96], key_file[96];

struct end {
	int fd; /* the plain end; -2 = not told yet, -1 = the handshake failed */
	struct err e;
	struct buf got;
	bool ended;
	size_t sent;
};

struct both {
	struct loop *loop;
	struct tls_bridges *all;
	struct tls_server *server;
	struct tls_client *client;
	struct end s, c;
};

static void told(void *arg, int fd, const struct err *e)
{
	struct end *end = arg;

	assert_int_equal(end->fd, -2);
	end->fd = fd;
	end->e = *e;
}

static void end_init(struct end *end)
{
	*end = (struct end){.fd = -2};
	buf_init(&end->got, 4 * BIG);
}

static void open_both(struct both *b)
{
	struct err e = ERR_NONE;

	*b = (struct both){0};
	end_init(&b->s);
	end_init(&b->c);
	assert_int_equal(loop_new(&b->loop, &e), 0);
	b->all = tls_bridges_new(b->loop);
	assert_int_equal(tls_server_new(cert_file, key_file, &b->server, &e), 0);
	assert_int_equal(tls_client_new(ca_file, &b->client, &e), 0);
}

static void close_both(struct both *b)
{
	tls_bridges_free(b->all);
	tls_server_free(b->server);
	tls_client_free(b->client);
	fd_close(b->s.fd < 0 ? -1 : b->s.fd);
	fd_close(b->c.fd < 0 ? -1 : b->c.fd);
	buf_done(&b->s.got);
	buf_done(&b->c.got);
	loop_free(b->loop);
}

static bool both_told(void *arg)
{
	struct both *b = arg;

	return b->s.fd != -2 && b->c.fd != -2;
}

static bool server_told(void *arg)
{
	return ((struct both *)arg)->s.fd != -2;
}

static void shake_as(struct both *b, const char *name)
{
	int wire[2];

	test_pair(wire);
	assert_non_null(tls_accept(b->all, b->server, wire[0], VIEW_NONE, told, &b->s));
	assert_non_null(tls_connect(b->all, b->client, wire[1], name, told, &b->c));
	spin(b->loop, both_told, b);
}

static void shake(struct both *b)
{
	shake_as(b, "good.test");
	assert_true(b->s.fd >= 0 && b->c.fd >= 0);
}

static bool take(void *arg)
{
	struct both *b = arg;

	if (b->s.fd >= 0 && !b->s.ended)
		b->s.ended = peer_take(b->s.fd, &b->s.got);
	if (b->c.fd >= 0 && !b->c.ended)
		b->c.ended = peer_take(b->c.fd, &b->c.got);
	return false;
}

static bool both_have_five(void *arg)
{
	struct both *b = arg;

	(void)take(b);
	return b->s.got.len >= 5 && b->c.got.len >= 5;
}

static bool server_sees_end(void *arg)
{
	(void)take(arg);
	return ((struct both *)arg)->s.ended;
}

static bool client_sees_end(void *arg)
{
	(void)take(arg);
	return ((struct both *)arg)->c.ended;
}

static bool none_left(void *arg)
{
	struct both *b = arg;

	(void)take(b);
	return tls_bridges_count(b->all) == 0;
}

/* ---- bytes ---- */

static void carries_bytes_both_ways(void **state)
{
	struct both b;

	open_both(&b);
	shake(&b);
	peer_say(b.c.fd, "hello");
	peer_say(b.s.fd, "world");
	spin(b.loop, both_have_five, &b);
	assert_true(view_is(buf_view(&b.s.got), "hello"));
	assert_true(view_is(buf_view(&b.c.got), "world"));
	assert_int_equal(tls_bridges_count(b.all), 2);
	close_both(&b);
}

static char pattern_at(size_t i, char salt)
{
	return (char)(i * 31 + (i >> 9) + (size_t)salt);
}

static void send_some(struct end *end, char salt)
{
	char bytes[8192];

	while (end->sent < BIG) {
		size_t n = MIN(sizeof(bytes), BIG - end->sent);
		ssize_t sent;

		for (size_t i = 0; i < n; i++)
			bytes[i] = pattern_at(end->sent + i, salt);
		sent = send(end->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0) {
			assert_int_equal(errno, EAGAIN);
			return;
		}
		end->sent += (size_t)sent;
	}
	(void)shutdown(end->fd, SHUT_WR);
}

static bool much_both_ways(void *arg)
{
	struct both *b = arg;

	send_some(&b->s, 's');
	send_some(&b->c, 'c');
	(void)take(b);
	return b->s.ended && b->c.ended;
}

static void check_pattern(const struct buf *got, char salt)
{
	const char *p = buf_view(got).p;

	assert_int_equal(got->len, BIG);
	for (size_t i = 0; i < BIG; i++)
		if (p[i] != pattern_at(i, salt))
			fail_msg("byte %zu differs", i);
}

static void carries_much_both_ways_at_once(void **state)
{
	struct both b;

	open_both(&b);
	shake(&b);
	spin(b.loop, much_both_ways, &b);
	check_pattern(&b.s.got, 'c');
	check_pattern(&b.c.got, 's');
	spin(b.loop, none_left, &b);
	close_both(&b);
}

struct pusher {
	struct both *b;
	size_t before;
	int quiet;
};

/* Nobody reads at the server: the client's writes must stop before everything is swallowed. */
static bool pushing_stops(void *arg)
{
	struct pusher *p = arg;

	send_some(&p->b->c, 'c');
	p->quiet = p->b->c.sent == p->before ? p->quiet + 1 : 0;
	p->before = p->b->c.sent;
	return p->quiet > 50;
}

static void slows_a_fast_writer_down(void **state)
{
	struct both b;
	struct pusher p = {.b = &b};

	open_both(&b);
	shake(&b);
	spin(b.loop, pushing_stops, &p);
	assert_true(b.c.sent < BIG);
	b.s.sent = BIG; /* the server has nothing to say */
	(void)shutdown(b.s.fd, SHUT_WR);
	spin(b.loop, much_both_ways, &b);
	check_pattern(&b.s.got, 'c');
	close_both(&b);
}

/* ---- ends ---- */

static void passes_half_closes_on(void **state)
{
	struct both b;

	open_both(&b);
	shake(&b);
	peer_say(b.c.fd, "question");
	(void)shutdown(b.c.fd, SHUT_WR);
	spin(b.loop, server_sees_end, &b);
	assert_true(view_is(buf_view(&b.s.got), "question"));
	assert_false(b.c.ended);
	peer_say(b.s.fd, "answer after the end");
	(void)shutdown(b.s.fd, SHUT_WR);
	spin(b.loop, client_sees_end, &b);
	assert_true(view_is(buf_view(&b.c.got), "answer after the end"));
	spin(b.loop, none_left, &b);
	close_both(&b);
}

static void delivers_what_was_said_before_leaving(void **state)
{
	struct both b;

	open_both(&b);
	shake(&b);
	peer_say(b.s.fd, "last words");
	b.s.fd = fd_close(b.s.fd);
	spin(b.loop, client_sees_end, &b);
	assert_true(view_is(buf_view(&b.c.got), "last words"));
	b.c.fd = fd_close(b.c.fd);
	spin(b.loop, none_left, &b);
	close_both(&b);
}

static void tells_when_the_other_has_gone(void **state)
{
	struct both b;

	open_both(&b);
	shake(&b);
	/* The client leaves with something unread; the server writes on and learns. */
	peer_say(b.s.fd, "unread");
	b.c.fd = fd_close(b.c.fd);
	spin(b.loop, server_sees_end, &b);
	(void)shutdown(b.s.fd, SHUT_WR);
	spin(b.loop, none_left, &b);
	close_both(&b);
}

static void cuts_what_is_under_way(void **state)
{
	struct both b;

	open_both(&b);
	shake(&b);
	tls_bridges_free(b.all);
	b.all = NULL;
	(void)take(&b);
	assert_true(b.s.ended && b.c.ended);
	close_both(&b);
}

/* ---- failures ---- */

static void refuses_wrong_names(void **state)
{
	struct both b;

	open_both(&b);
	shake_as(&b, "other.test");
	assert_int_equal(b.c.fd, -1);
	assert_int_equal(b.c.e.code, -EACCES);
	assert_non_null(strstr(b.c.e.msg, "ostname mismatch"));
	assert_int_equal(b.s.fd, -1);
	spin(b.loop, none_left, &b);
	close_both(&b);
}

static void verifies_addresses_as_such(void **state)
{
	static const struct {
		const char *name;
		bool good;
	} cases[] = {
		{"127.0.0.1", true}, {"127.0.0.2", false},  {"::1", true},
		{"::2", false},	     {"a.wild.test", true}, {"a.b.wild.test", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct both b;

		open_both(&b);
		shake_as(&b, cases[i].name);
		assert_int_equal(b.c.fd >= 0, cases[i].good);
		close_both(&b);
	}
}

static void refuses_certificates_of_others(void **state)
{
	struct test_cert rogue = test_cert_new(NULL, NULL, HOUR);
	struct test_cert forged = test_cert_new("DNS:good.test", &rogue, HOUR);
	struct test_cert old = test_cert_new("DNS:good.test", &authority, -HOUR);
	struct test_cert *cases[] = {&forged, &old};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE;
		struct both b;

		open_both(&b);
		assert_int_equal(tls_server_use_pem(b.server, view_of(cases[i]->cert_pem),
						    view_of(cases[i]->key_pem), &e),
				 0);
		shake_as(&b, "good.test");
		assert_int_equal(b.c.fd, -1);
		assert_int_equal(b.c.e.code, -EACCES);
		close_both(&b);
	}
	test_cert_done(&old);
	test_cert_done(&forged);
	test_cert_done(&rogue);
}

static void fails_without_a_name(void **state)
{
	struct both b;
	int wire[2];

	open_both(&b);
	test_pair(wire);
	(void)tls_connect(b.all, b.client, wire[1], "", told, &b.c);
	b.s.fd = wire[0];
	spin(b.loop, both_told, &b);
	assert_int_equal(b.c.fd, -1);
	close_both(&b);
}

static void answers_http_in_http(void **state)
{
	struct both b;
	struct buf got = BUF_INIT(4096);
	int wire[2];

	open_both(&b);
	test_pair(wire);
	(void)tls_accept(b.all, b.server, wire[0], VIEW_NONE, told, &b.s);
	peer_say(wire[1], "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
	spin(b.loop, server_told, &b);
	assert_int_equal(b.s.fd, -1);
	assert_true(peer_take(wire[1], &got));
	assert_true(view_starts(buf_view(&got), VIEW("HTTP/1.1 400 ")));
	buf_done(&got);
	fd_close(wire[1]);
	close_both(&b);
}

static void fails_on_nonsense_and_silence(void **state)
{
	static const char *const says[] = {"", "\x16\x03\x01\x00\x05hello", "\x16\x03\x01\xff\xff",
					   "SSH-2.0-nonsense\r\n"};

	for (size_t i = 0; i < ARRAY_LEN(says); i++) {
		struct both b;
		int wire[2];

		open_both(&b);
		test_pair(wire);
		(void)tls_accept(b.all, b.server, wire[0], VIEW_NONE, told, &b.s);
		if (*says[i])
			peer_say(wire[1], says[i]);
		(void)shutdown(wire[1], SHUT_WR);
		spin(b.loop, server_told, &b);
		assert_int_equal(b.s.fd, -1);
		assert_true(b.s.e.code < 0 && b.s.e.msg[0]);
		assert_int_equal(tls_bridges_count(b.all), 0);
		fd_close(wire[1]);
		close_both(&b);
	}
}

static void gives_up_on_a_slow_handshake(void **state)
{
	struct both b;
	int wire[2];

	open_both(&b);
	test_pair(wire);
	tls_bridges_patience(b.all, 50);
	(void)tls_accept(b.all, b.server, wire[0], VIEW("\x16\x03\x01"), told, &b.s);
	spin(b.loop, server_told, &b);
	assert_int_equal(b.s.e.code, -ETIMEDOUT);
	fd_close(wire[1]);
	close_both(&b);
}

static bool loop_turned(void *arg)
{
	return ++*(int *)arg > 3;
}

static void cancels_silently(void **state)
{
	struct both b;
	int wire[2], turns = 0;

	open_both(&b);
	test_pair(wire);
	tls_cancel(tls_accept(b.all, b.server, wire[0], VIEW_NONE, told, &b.s));
	tls_cancel(tls_connect(b.all, b.client, wire[1], "good.test", told, &b.c));
	tls_cancel(NULL);
	spin(b.loop, loop_turned, &turns);
	assert_int_equal(b.s.fd, -2);
	assert_int_equal(b.c.fd, -2);
	assert_int_equal(tls_bridges_count(b.all), 0);
	close_both(&b);
}

/* ---- early bytes, certificates by name, new certificates ---- */

static void takes_bytes_that_came_early(void **state)
{
	struct both b;
	int wire[2];
	char bytes[100]; /* a part of the ClientHello */
	ssize_t n = -1;

	open_both(&b);
	test_pair(wire);
	(void)tls_connect(b.all, b.client, wire[1], "good.test", told, &b.c);
	while (n < 0) {
		int turns = 0;

		spin(b.loop, loop_turned, &turns);
		n = recv(wire[0], bytes, sizeof(bytes), MSG_DONTWAIT);
	}
	(void)tls_accept(b.all, b.server, wire[0], view_mem(bytes, (size_t)n), told, &b.s);
	spin(b.loop, both_told, &b);
	assert_true(b.s.fd >= 0 && b.c.fd >= 0);
	close_both(&b);
}

struct finder {
	SSL_CTX *ctx;
	char asked[64];
	int asked_n;
};

static void *find(void *arg, const char *name)
{
	struct finder *f = arg;

	f->asked_n++;
	snprintf(f->asked, sizeof(f->asked), "%s", name ? name : "(none)");
	return name && strcmp(name, "unknown.test") == 0 ? NULL : f->ctx;
}

static void finds_certificates_by_name(void **state)
{
	struct finder f = {.ctx = SSL_CTX_new(TLS_server_method())};
	struct err e = ERR_NONE;
	struct both b;

	assert_int_equal(SSL_CTX_use_certificate(f.ctx, leaf.x509), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(f.ctx, leaf.key), 1);
	open_both(&b);
	tls_server_free(b.server);
	assert_int_equal(tls_server_new_found(find, &f, &b.server, &e), 0);
	shake(&b);
	assert_string_equal(f.asked, "good.test");
	assert_int_equal(f.asked_n, 1);
	fd_close(b.c.fd);
	fd_close(b.s.fd);
	b.c.fd = b.s.fd = -2;
	shake_as(&b, "unknown.test");
	assert_int_equal(b.c.fd, -1);
	assert_int_equal(b.s.fd, -1);
	b.c.fd = b.s.fd = -2;
	shake_as(&b, "127.0.0.1");
	assert_string_equal(f.asked, "(none)");
	close_both(&b);
	SSL_CTX_free(f.ctx);
}

static void outlives_its_server_and_client(void **state)
{
	struct both b;
	int wire[2];

	open_both(&b);
	test_pair(wire);
	(void)tls_accept(b.all, b.server, wire[0], VIEW_NONE, told, &b.s);
	(void)tls_connect(b.all, b.client, wire[1], "good.test", told, &b.c);
	tls_server_free(b.server);
	tls_client_free(b.client);
	b.server = NULL;
	b.client = NULL;
	spin(b.loop, both_told, &b);
	assert_true(b.s.fd >= 0 && b.c.fd >= 0);
	close_both(&b);
}

static void new_certificates_leave_old_connections_alone(void **state)
{
	struct test_cert next = test_cert_new("DNS:next.test", &authority, 2 * HOUR);
	struct err e = ERR_NONE;
	struct both b;
	int64_t before;
	struct end old_s, old_c;

	open_both(&b);
	shake(&b);
	before = tls_server_until(b.server);
	write_text(cert_file, next.cert_pem);
	/* The key is still the old one: refused, and the old certificate serves on. */
	assert_true(tls_server_reload(b.server, &e) < 0);
	assert_int_equal(tls_server_until(b.server), before);
	write_text(key_file, next.key_pem);
	assert_int_equal(tls_server_reload(b.server, &e), 0);
	assert_true(tls_server_until(b.server) > before);
	old_s = b.s;
	old_c = b.c;
	end_init(&b.s);
	end_init(&b.c);
	shake_as(&b, "next.test");
	assert_true(b.c.fd >= 0);
	fd_close(b.s.fd);
	fd_close(b.c.fd);
	b.s = old_s;
	b.c = old_c;
	peer_say(b.c.fd, "hello");
	peer_say(b.s.fd, "still");
	spin(b.loop, both_have_five, &b);
	write_text(cert_file, leaf.cert_pem);
	write_text(key_file, leaf.key_pem);
	close_both(&b);
	test_cert_done(&next);
}

static void says_what_is_wrong_with_files(void **state)
{
	struct tls_server *s = NULL;
	struct tls_client *c = NULL;
	struct err e = ERR_NONE;
	char empty[96];

	snprintf(empty, sizeof(empty), "%s/empty", dir);
	write_text(empty, "");
	assert_true(tls_server_new("/nonexistent", key_file, &s, &e) < 0);
	assert_non_null(strstr(e.msg, "/nonexistent"));
	assert_true(tls_server_new(empty, key_file, &s, &e) < 0);
	assert_non_null(strstr(e.msg, "certificate"));
	assert_true(tls_server_new(cert_file, empty, &s, &e) < 0);
	assert_non_null(strstr(e.msg, "key"));
	assert_true(tls_server_new(dir, key_file, &s, &e) < 0);
	assert_true(tls_server_new(cert_file, cert_file, &s, &e) < 0);
	assert_true(tls_client_new("/nonexistent", &c, &e) < 0);
	assert_true(tls_client_new(empty, &c, &e) < 0);
	assert_true(tls_client_new("/proc/self/fdinfo", &c, &e) < 0);
	assert_int_equal(tls_client_new(dir, &c, &e), 0); /* there are certificates among others */
	tls_client_free(c);
	(void)unlink(empty);
}

/* ---- many ---- */

#define MANY 200

struct crowd {
	struct both b;
	struct end ends[2 * MANY];
};

static bool crowd_told(void *arg)
{
	struct crowd *c = arg;

	for (size_t i = 0; i < ARRAY_LEN(c->ends); i++)
		if (c->ends[i].fd == -2)
			return false;
	return true;
}

static bool crowd_heard(void *arg)
{
	struct crowd *c = arg;
	bool all = true;

	for (size_t i = 0; i < ARRAY_LEN(c->ends); i++) {
		(void)peer_take(c->ends[i].fd, &c->ends[i].got);
		all = all && c->ends[i].got.len == 6;
	}
	return all;
}

static bool crowd_gone(void *arg)
{
	return tls_bridges_count(((struct crowd *)arg)->b.all) == 0;
}

static void bears_many_at_once(void **state)
{
	struct crowd *c = mem_new(struct crowd);

	open_both(&c->b);
	for (size_t i = 0; i < MANY; i++) {
		int wire[2];

		test_pair(wire);
		end_init(&c->ends[2 * i]);
		end_init(&c->ends[2 * i + 1]);
		(void)tls_accept(c->b.all, c->b.server, wire[0], VIEW_NONE, told, &c->ends[2 * i]);
		(void)tls_connect(c->b.all, c->b.client, wire[1], "good.test", told,
				  &c->ends[2 * i + 1]);
	}
	spin(c->b.loop, crowd_told, c);
	for (size_t i = 0; i < ARRAY_LEN(c->ends); i++) {
		assert_true(c->ends[i].fd >= 0);
		peer_say(c->ends[i].fd, "hello!");
	}
	spin(c->b.loop, crowd_heard, c);
	for (size_t i = 0; i < ARRAY_LEN(c->ends); i++) {
		fd_close(c->ends[i].fd);
		buf_done(&c->ends[i].got);
	}
	spin(c->b.loop, crowd_gone, c);
	close_both(&c->b);
	free(c);
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
	leaf = test_cert_new("DNS:good.test,DNS:*.wild.test,IP:127.0.0.1,IP:::1", &authority, HOUR);
	write_text(ca_file, authority.cert_pem);
	write_text(cert_file, leaf.cert_pem);
	write_text(key_file, leaf.key_pem);
	return 0;
}

static int remove_certificates(void **state)
{
	(void)unlink(ca_file);
	(void)unlink(cert_file);
	(void)unlink(key_file);
	(void)rmdir(dir);
	test_cert_done(&authority);
	test_cert_done(&leaf);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(carries_bytes_both_ways),
		cmocka_unit_test(carries_much_both_ways_at_once),
		cmocka_unit_test(slows_a_fast_writer_down),
		cmocka_unit_test(passes_half_closes_on),
		cmocka_unit_test(delivers_what_was_said_before_leaving),
		cmocka_unit_test(tells_when_the_other_has_gone),
		cmocka_unit_test(cuts_what_is_under_way),
		cmocka_unit_test(refuses_wrong_names),
		cmocka_unit_test(verifies_addresses_as_such),
		cmocka_unit_test(refuses_certificates_of_others),
		cmocka_unit_test(fails_without_a_name),
		cmocka_unit_test(answers_http_in_http),
		cmocka_unit_test(fails_on_nonsense_and_silence),
		cmocka_unit_test(gives_up_on_a_slow_handshake),
		cmocka_unit_test(cancels_silently),
		cmocka_unit_test(takes_bytes_that_came_early),
		cmocka_unit_test(finds_certificates_by_name),
		cmocka_unit_test(outlives_its_server_and_client),
		cmocka_unit_test(new_certificates_leave_old_connections_alone),
		cmocka_unit_test(says_what_is_wrong_with_files),
		cmocka_unit_test(bears_many_at_once),
	};

	return cmocka_run_group_tests(tests, make_certificates, remove_certificates);
}
