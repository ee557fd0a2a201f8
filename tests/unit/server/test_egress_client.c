/*
 * test_egress_client.c - sandboxes are held whoever dies: a runtime of the test's own opens their
 * means, and the test is egress.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "codec/egress_msg.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "net/loop.h"
#include "runtime/runtime.h"
#include "server/egress_client.h"
#include "sys/memfd.h"
#include "sys/seqpacket.h"

#define LIMIT_MS 30000
#define ONE	 "00000000-0000-4000-8000-000000000001"
#define TWO	 "00000000-0000-4000-8000-000000000002"

struct test {
	struct loop *loop;
	struct egress_client *client;
	struct runtime runtime;
	struct loop_timer *limit;
	int egress; /* our end */
	/* NETWATCHes that were asked for */
	unsigned watches;
	bool watch_later; /* and answered by the test */
	int watch_fails;
	runtime_netwatch_fn *watch_fn;
	void *watch_arg;
	/* what the client's owner was told */
	unsigned held, not_held, found, changes;
	int held_code;
	int change_result;
	char pem[64];
	const char *policy;
};

static void too_late(void *arg)
{
	(void)arg;
	fail_msg("it took too long");
}

/* ---- a runtime ---- */

static void answer_watch(struct test *t)
{
	int fds[RUNTIME_NET_FDS];

	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	t->watch_fn(t->watch_arg, fds, NULL);
}

static void netwatch(struct runtime *r, const char *id, runtime_netwatch_fn *fn, void *arg)
{
	struct test *t = container_of(r, struct test, runtime);
	struct err e = ERR_NONE;

	assert_true(strlen(id) == 36);
	t->watches++;
	t->watch_fn = fn;
	t->watch_arg = arg;
	if (t->watch_fails) {
		err_set(&e, t->watch_fails, "no means");
		fn(arg, NULL, &e);
	} else if (!t->watch_later) {
		answer_watch(t);
	}
}

static const struct runtime_ops ops = {.netwatch = netwatch};

/* ---- the owner ---- */

static void describe(void *arg, const char *id, struct json_writer *w)
{
	(void)id;
	json_put_cstr(w, "policy", ((struct test *)arg)->policy);
}

static bool matches(void *arg, const char *id, const struct json *document)
{
	struct view policy;

	(void)id;
	return json_str(json_get(document, "policy"), &policy) &&
	       view_is(policy, ((struct test *)arg)->policy);
}

static int found(void *arg, const char *id, const struct json *document, struct err *e)
{
	(void)id;
	(void)document;
	(void)e;
	((struct test *)arg)->found++;
	return 0;
}

static int changed(void *arg, const char *id, const struct json *document, struct err *e)
{
	struct test *t = arg;

	(void)id;
	(void)document;
	t->changes++;
	return t->change_result ? err_set(e, t->change_result, "the disk is full") : 0;
}

static const struct egress_client_events events = {describe, matches, found, changed};

static void held(void *arg, const struct err *e)
{
	struct test *t = arg;

	t->held += !e;
	t->not_held += e != NULL;
	t->held_code = e ? e->code : 0;
	loop_stop(t->loop);
}

static void certified(void *arg, struct view pem, const struct err *e)
{
	struct test *t = arg;

	snprintf(t->pem, sizeof(t->pem), "%s" VIEW_FMT, e ? "failed: " : "", VIEW_ARG(pem));
	loop_stop(t->loop);
}

/* ---- egress ---- */

static void connect_egress(struct test *t)
{
	struct err e = ERR_NONE;
	int ends[2];

	fd_close(t->egress);
	assert_int_equal(seqpacket_pair(ends, &e), 0);
	t->egress = ends[0];
	egress_client_attach(t->client, ends[1]);
}

static void tell(struct test *t, enum egress_kind kind, uint64_t serial, const char *id,
		 const char *document, int code)
{
	struct err e = ERR_NONE;
	struct egress_msg m;
	int fd = -1;

	egress_msg_init(&m, kind, serial, id);
	m.code = code;
	if (document)
		assert_int_equal(memfd_of("document", view_of(document), &fd, &e), 0);
	assert_int_equal(seqpacket_send(t->egress, egress_msg_view(&m), &fd, fd >= 0, &e), 0);
	fd_close(fd);
}

static void something_came(void *arg, int fd, unsigned wanted)
{
	(void)fd;
	(void)wanted;
	loop_stop(arg);
}

/* The next message from the client; the document that came along, if `ret_text` wants it. */
static struct egress_msg hear(struct test *t, enum egress_kind kind, struct buf *ret_text)
{
	int fds[SEQPACKET_MAX_FDS], n = 0;
	struct err e = ERR_NONE;
	struct egress_msg m;
	char datagram[sizeof(m)];
	struct loop_fd *watch;

	assert_int_equal(loop_fd_new(t->loop, t->egress, something_came, t->loop, &watch, &e), 0);
	loop_fd_want(watch, LOOP_READ);
	while ((n = seqpacket_receive(t->egress, datagram, sizeof(datagram), fds, &e)) == -EAGAIN)
		loop_run(t->loop);
	loop_fd_free(watch);
	assert_int_equal(n, sizeof(m));
	assert_int_equal(egress_msg_parse(view_mem(datagram, (size_t)n), &m, &e), 0);
	assert_int_equal(m.kind, kind);
	assert_true((kind == EGRESS_ADD) == (fds[RUNTIME_NET_FDS] >= 0));
	if (ret_text)
		assert_int_equal(memfd_read(fds[0], ret_text, &e), 0);
	seqpacket_close(fds, 0);
	return m;
}

static void run_until(struct test *t, const unsigned *counter, unsigned value)
{
	while (*counter < value)
		loop_run(t->loop);
}

static int begin(void **state)
{
	struct test *t = mem_new(struct test);
	struct err e = ERR_NONE;

	assert_int_equal(loop_new(&t->loop, &e), 0);
	t->limit = loop_timer_new(t->loop, too_late, t);
	loop_timer_start(t->limit, LIMIT_MS);
	t->egress = -1;
	t->policy = "old";
	t->runtime.ops = &ops;
	t->client = egress_client_new(t->loop, &events, t);
	egress_client_set_runtime(t->client, &t->runtime);
	*state = t;
	return 0;
}

static int end(void **state)
{
	struct test *t = *state;

	egress_client_free(t->client);
	loop_timer_free(t->limit);
	loop_free(t->loop);
	fd_close(t->egress);
	free(t);
	return 0;
}

/* ---- tests ---- */

static void a_sandbox_is_watched_and_added_once_egress_is_there(void **state)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(4096);
	struct test *t = *state;
	struct egress_msg m;

	egress_client_hold(t->client, ONE, held, t);
	connect_egress(t);
	assert_int_equal(t->watches, 0);
	tell(t, EGRESS_HELLO, 0, NULL, NULL, 0);
	m = hear(t, EGRESS_ADD, &text);
	assert_string_equal(m.id, ONE);
	assert_string_equal(buf_str(&text), "{\"policy\":\"old\"}");
	assert_int_equal(t->held, 0);
	tell(t, EGRESS_OK, m.serial, ONE, NULL, 0);
	run_until(t, &t->held, 1);
	assert_true(egress_client_holds(t->client, ONE));
	/* It is: nothing more is asked. */
	egress_client_hold(t->client, ONE, held, t);
	assert_int_equal(t->held, 2);
	assert_int_equal(t->watches, 1);
	egress_client_leave(t->client, ONE);
	assert_false(egress_client_holds(t->client, ONE));
	hear(t, EGRESS_REMOVE, NULL);
}

static void failures_are_told_and_leave_nothing(void **state)
{
	struct test *t = *state;
	struct egress_msg m;

	connect_egress(t);
	tell(t, EGRESS_HELLO, 0, NULL, NULL, 0);
	egress_client_hold(t->client, ONE, held, t);
	m = hear(t, EGRESS_ADD, NULL);
	tell(t, EGRESS_FAILED, m.serial, ONE, NULL, -ENOSPC);
	run_until(t, &t->not_held, 1);
	assert_int_equal(t->held_code, -ENOSPC);
	egress_client_leave(t->client, ONE);

	t->watch_fails = -ENOENT;
	egress_client_hold(t->client, TWO, held, t);
	run_until(t, &t->not_held, 2);
	assert_int_equal(t->held_code, -ESRCH);
	egress_client_leave(t->client, TWO);
	assert_false(egress_client_holds(t->client, TWO));
}

static void a_successor_gets_everything_again_with_its_vault(void **state)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(4096);
	struct test *t = *state;
	struct egress_msg m;

	connect_egress(t);
	tell(t, EGRESS_HELLO, 0, NULL, NULL, 0);
	egress_client_hold(t->client, ONE, held, t);
	m = hear(t, EGRESS_ADD, NULL);
	tell(t, EGRESS_OK, m.serial, ONE, NULL, 0);
	tell(t, EGRESS_CHANGED, 7, ONE, "{\"policy\":\"new\",\"vault\":{\"a\":[1]}}", 0);
	m = hear(t, EGRESS_SAVED, NULL);
	assert_int_equal(m.serial, 7);
	assert_int_equal(m.code, 0);
	assert_int_equal(t->changes, 1);

	connect_egress(t); /* it has died, and knows nothing */
	tell(t, EGRESS_HELLO, 0, NULL, NULL, 0);
	m = hear(t, EGRESS_ADD, &text);
	assert_string_equal(buf_str(&text), "{\"policy\":\"old\",\"vault\":{\"a\":[1]}}");
	assert_int_equal(t->watches, 2);

	connect_egress(t); /* and once more before it could answer */
	tell(t, EGRESS_HELLO, 0, NULL, NULL, 0);
	m = hear(t, EGRESS_ADD, NULL);
	tell(t, EGRESS_OK, m.serial, ONE, NULL, 0);
	egress_client_hold(t->client, ONE, held, t);
	run_until(t, &t->held, 2);
}

static void what_egress_still_has_is_not_disturbed(void **state)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(4096);
	struct test *t = *state;
	struct egress_msg m;

	egress_client_hold(t->client, ONE, NULL, NULL);
	egress_client_hold(t->client, TWO, NULL, NULL);
	connect_egress(t);
	tell(t, EGRESS_CHANGED, 1, ONE, "{\"policy\":\"old\",\"vault\":{\"x\":1}}", 0);
	tell(t, EGRESS_CHANGED, 2, TWO, "{\"policy\":\"older\",\"vault\":{\"y\":1}}", 0);
	tell(t, EGRESS_CHANGED, 3, "00000000-0000-4000-8000-000000000003", "{}", 0);
	tell(t, EGRESS_HELLO, 0, NULL, NULL, 0);
	hear(t, EGRESS_SAVED, NULL);
	hear(t, EGRESS_SAVED, NULL);
	m = hear(t, EGRESS_SAVED, NULL);
	assert_int_equal(m.code, -ENOENT); /* nobody here knows it */
	hear(t, EGRESS_REMOVE, NULL);
	m = hear(t, EGRESS_ADD, &text); /* another policy holds here */
	assert_string_equal(m.id, TWO);
	assert_string_equal(buf_str(&text), "{\"policy\":\"old\",\"vault\":{\"y\":1}}");
	assert_int_equal(t->watches, 1);
	assert_int_equal(t->changes, 0);
	assert_int_equal(t->found, 2);
}

static void a_change_that_cannot_be_kept_is_refused(void **state)
{
	struct test *t = *state;
	struct egress_msg m;

	connect_egress(t);
	tell(t, EGRESS_HELLO, 0, NULL, NULL, 0);
	egress_client_hold(t->client, ONE, held, t);
	m = hear(t, EGRESS_ADD, NULL);
	tell(t, EGRESS_OK, m.serial, ONE, NULL, 0);
	t->change_result = -ENOSPC;
	tell(t, EGRESS_CHANGED, 9, ONE, "{\"policy\":\"new\"}", 0);
	m = hear(t, EGRESS_SAVED, NULL);
	assert_int_equal(m.code, -ENOSPC);
	assert_string_equal(m.text, "the disk is full");
	tell(t, EGRESS_CHANGED, 10, ONE, "no JSON", 0);
	assert_true(hear(t, EGRESS_SAVED, NULL).code < 0);
	tell(t, EGRESS_CHANGED, 11, ONE, NULL, 0);
	assert_true(hear(t, EGRESS_SAVED, NULL).code < 0);
	tell(t, EGRESS_CHANGED, 12, TWO, "{}", 0);
	assert_int_equal(hear(t, EGRESS_SAVED, NULL).code, -ENOENT);
	hear(t, EGRESS_REMOVE, NULL);
}

static void a_sandbox_that_ends_on_its_way_is_forgotten(void **state)
{
	struct test *t = *state;

	connect_egress(t);
	tell(t, EGRESS_HELLO, 0, NULL, NULL, 0);
	egress_client_certificate(t->client, TWO, certified, t);
	tell(t, EGRESS_OK, hear(t, EGRESS_CA, NULL).serial, TWO, "PEM", 0);
	while (!t->pem[0])
		loop_run(t->loop);
	t->watch_later = true;
	egress_client_hold(t->client, ONE, held, t);
	assert_int_equal(t->watches, 1);
	egress_client_leave(t->client, ONE);
	assert_int_equal(t->not_held, 1);
	answer_watch(t);
	assert_false(egress_client_holds(t->client, ONE));
}

static void certificates_are_asked_for_until_they_come(void **state)
{
	struct test *t = *state;
	struct egress_msg m;

	egress_client_certificate(t->client, ONE, certified, t);
	connect_egress(t);
	tell(t, EGRESS_HELLO, 0, NULL, NULL, 0);
	m = hear(t, EGRESS_CA, NULL);
	connect_egress(t);
	tell(t, EGRESS_HELLO, 0, NULL, NULL, 0);
	m = hear(t, EGRESS_CA, NULL);
	assert_string_equal(m.id, ONE);
	tell(t, EGRESS_OK, m.serial, ONE, "the certificate", 0);
	while (!t->pem[0])
		loop_run(t->loop);
	assert_string_equal(t->pem, "the certificate");

	t->pem[0] = '\0';
	egress_client_certificate(t->client, ONE, certified, t);
	m = hear(t, EGRESS_CA, NULL);
	tell(t, EGRESS_FAILED, m.serial, ONE, NULL, -EIO);
	while (!t->pem[0])
		loop_run(t->loop);
	assert_string_equal(t->pem, "failed: ");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(a_sandbox_is_watched_and_added_once_egress_is_there),
		TEST(failures_are_told_and_leave_nothing),
		TEST(a_successor_gets_everything_again_with_its_vault),
		TEST(what_egress_still_has_is_not_disturbed),
		TEST(a_change_that_cannot_be_kept_is_refused),
		TEST(a_sandbox_that_ends_on_its_way_is_forgotten),
		TEST(certificates_are_asked_for_until_they_come),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
