/*
 * Isolated sessions for real: namespaces, overlay, runs, what is left behind.
 *
 * Skipped where the kernel or the rights of the caller do not allow namespaces.
 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/strv.h"
#include "execd/app.h"
#include "execd/isolated.h"
#include "execd/isolated_box.h"
#include "execd/isolated_upper.h"
#include "execd/options.h"
#include "execd/reaper.h"
#include "execd/shell.h"
#include "execd/tree_remove.h"
#include "net/loop.h"

#define DEADLINE_MS 30000

struct fixture {
	struct app app;
	struct options options;
	char dir[64];
	char workspace[80];
	struct isolated_session *session;
	struct loop_timer *deadline;
	struct loop_timer *poll;
	struct buf out;
	struct shell_end end;
};

static void on_deadline(void *arg)
{
	fail_msg("the session did not answer; it printed '%s'",
		 buf_str(&((struct fixture *)arg)->out));
}

static void write_file(const struct fixture *f, const char *name, const char *text)
{
	char path[160];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", f->workspace, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void expect_file(const struct fixture *f, const char *name, const char *text)
{
	char path[160], got[256] = "";
	int fd;

	snprintf(path, sizeof(path), "%s/%s", f->workspace, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (!text) {
		assert_int_equal(fd, -1);
		return;
	}
	assert_true(fd >= 0);
	assert_true(read(fd, got, sizeof(got) - 1) >= 0);
	fd_close(fd);
	assert_string_equal(got, text);
}

static int set_up(void **state)
{
	struct fixture *f = mem_new(struct fixture);
	struct err e = ERR_NONE;
	char path[128];

	signal(SIGPIPE, SIG_IGN);
	strcpy(f->dir, "/var/tmp/isolated-test-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	assert_int_equal(chmod(f->dir, 0755), 0);
	snprintf(f->workspace, sizeof(f->workspace), "%s/work", f->dir);
	assert_int_equal(mkdir(f->workspace, 0755), 0);
	snprintf(path, sizeof(path), "%s/uppers", f->dir);
	f->options.isolation_upper_root = mem_strdup(path);
	strv_add(&f->options.isolation_allowed, f->dir);
	f->app.options = &f->options;
	assert_int_equal(loop_new(&f->app.loop, &e), 0);
	assert_int_equal(reaper_new(f->app.loop, /* init= */ false, &f->app.reaper, &e), 0);
	strv_add(&f->app.env, "PATH=/usr/local/bin:/usr/bin:/bin");
	strv_add(&f->app.env, "PLAIN=seen");
	strv_add(&f->app.env, "MY_API_KEY=hidden");
	f->deadline = loop_timer_new(f->app.loop, on_deadline, f);
	buf_init(&f->out, (size_t)1 << 20);
	assert_int_equal(isolated_new(&f->app, &f->app.isolated, &e), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	struct err e = ERR_NONE;

	isolated_free(f->app.isolated);
	loop_timer_free(f->deadline);
	loop_run(f->app.loop); /* until the workers have ended */
	reaper_free(f->app.reaper);
	loop_free(f->app.loop);
	free(f->app.bash);
	free(f->app.sh);
	strv_done(&f->app.env);
	strv_done(&f->options.isolation_allowed);
	free((char *)f->options.isolation_upper_root);
	buf_done(&f->out);
	assert_int_equal(tree_remove(AT_FDCWD, f->dir, &e), 0);
	free(f);
	return 0;
}

static void need_namespaces(struct fixture *f)
{
	const struct isolated_probe *p = isolated_probe(f->app.isolated);

	if (!p->available) {
		print_message("# SKIP %s\n", p->message);
		skip();
	}
}

/* `more`: members behind the workspace, with a comma in front. */
static int create(struct fixture *f, const char *mode, const char *more, struct err *e)
{
	osb_cleanup(buf_done) struct buf body = BUF_INIT(4096);

	assert_int_equal(buf_printf(&body, "{\"workspace\":{\"path\":\"%s\",\"mode\":\"%s\"}%s}",
				    f->workspace, mode, more),
			 0);
	return isolated_create(f->app.isolated, buf_view(&body), &f->session, e);
}

static void create_ok(struct fixture *f, const char *mode, const char *more)
{
	struct err e = ERR_NONE;

	need_namespaces(f);
	if (create(f, mode, more, &e) < 0)
		fail_msg("%s", e.msg);
}

static bool on_output(void *arg, struct view bytes)
{
	assert_int_equal(buf_append_view(&((struct fixture *)arg)->out, bytes), 0);
	return true;
}

static void on_done(void *arg, const struct shell_end *end)
{
	struct fixture *f = arg;

	f->end = *end;
	f->end.e = NULL;
	loop_stop(f->app.loop);
}

static void wait_stop(struct fixture *f)
{
	loop_timer_start(f->deadline, DEADLINE_MS);
	loop_run(f->app.loop);
	loop_timer_stop(f->deadline);
}

static void run(struct fixture *f, const char *command)
{
	struct shell_job job = {
		.command = view_of(command), .output = on_output, .done = on_done, .arg = f};
	struct shell_run *ignored;
	struct err e = ERR_NONE;

	buf_clear(&f->out);
	assert_int_equal(shell_submit(isolated_shell(f->session), &job, &ignored, &e), 0);
	wait_stop(f);
}

static void expect(struct fixture *f, const char *command, const char *printed, int code)
{
	run(f, command);
	assert_string_equal(buf_str(&f->out), printed);
	assert_int_equal(f->end.code, code);
}

static void overlay_keeps_changes_from_the_workspace(void **state)
{
	struct fixture *f = *state;

	write_file(f, "old", "old\n");
	write_file(f, "gone", "gone\n");
	create_ok(f, "overlay", "");
	expect(f, "pwd | grep -c /work; cat old; echo new > old; echo fresh > fresh; rm gone; ls",
	       "1\nold\nfresh\nold\n", 0);
	expect(f, "cat old", "new\n", 0);
	expect_file(f, "old", "old\n");
	expect_file(f, "gone", "gone\n");
	expect_file(f, "fresh", NULL);
}

static void commit_applies_changes(void **state)
{
	struct fixture *f = *state;
	struct err e = ERR_NONE;

	write_file(f, "old", "old\n");
	write_file(f, "gone", "gone\n");
	write_file(f, "becomes-dir", "x");
	create_ok(f, "overlay", "");
	expect(f,
	       "mkdir -p d/e; echo deep > d/e/f; rm gone becomes-dir; mkdir becomes-dir; "
	       "echo in > becomes-dir/in; echo new > old; ln -s old link; chmod 600 old",
	       "", 0);
	assert_int_equal(
		isolated_upper_commit(isolated_box_upper(f->session->box), f->workspace, &e), 0);
	expect_file(f, "old", "new\n");
	expect_file(f, "link", "new\n");
	expect_file(f, "gone", NULL);
	expect_file(f, "d/e/f", "deep\n");
	expect_file(f, "becomes-dir/in", "in\n");
	expect(f, "cat old d/e/f; ls", "new\ndeep\nbecomes-dir\nd\nlink\nold\n", 0);
}

static void modes_decide_who_may_write(void **state)
{
	struct fixture *f = *state;

	write_file(f, "a", "a");
	create_ok(f, "rw", "");
	expect(f, "echo through > b", "", 0);
	expect_file(f, "b", "through\n");
	isolated_delete(f->app.isolated, f->session);
	create_ok(f, "ro", "");
	run(f, "echo no > c");
	assert_int_not_equal(f->end.code, 0);
	expect_file(f, "c", NULL);
}

static void the_rest_of_the_world_is_read_only(void **state)
{
	static const char *const commands[] = {
		"touch /etc/isolated-test",
		"touch /var/isolated-test",
		"echo 1 > /proc/sys/kernel/sysctl_writes_strict",
		"echo h > /proc/sysrq-trigger",
		"mount -t tmpfs none /mnt",
		"mount -o remount,rw /",
		"umount /proc",
		"mknod /tmp/node b 8 0",
		"ls /proc/1/root/",
		"cat /proc/1/environ",
		"test -e /dev/vda -o -e /dev/mem -o -e /dev/kmsg",
		"unshare -m true",
		"kill -9 1 && sleep 1 && false",
	};
	struct fixture *f = *state;

	create_ok(f, "overlay", "");
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		run(f, commands[i]);
		if (f->end.code == 0)
			fail_msg("'%s' was possible: %s", commands[i], buf_str(&f->out));
		assert_true(isolated_alive(f->session));
	}
	expect(f,
	       "touch /tmp/x && echo z > /dev/null && head -c 2 /dev/zero | wc -c && touch /run/x",
	       "2\n", 0);
	expect(f, "set -- /proc/[0-9]*; test $# -lt 10 && echo few", "few\n", 0);
}

static void profiles_differ_in_tmp_and_secrets(void **state)
{
	struct fixture *f = *state;

	create_ok(f, "overlay", "");
	expect(f, "ls /tmp | wc -l; echo $PLAIN-$MY_API_KEY", "0\nseen-\n", 0);
	isolated_delete(f->app.isolated, f->session);
	create_ok(f, "overlay",
		  ",\"profile\":\"balanced\",\"env_passthrough\":{\"mode\":\"allow\",\"keys\":["
		  "\"PATH\","
		  "\"MY_API_KEY\"]}");
	expect(f, "mount | grep -c ' /tmp type tmpfs' ; echo $PLAIN-$MY_API_KEY", "0\n-hidden\n",
	       0);
}

static void users_are_real_or_mapped(void **state)
{
	struct fixture *f = *state;
	const struct isolated_probe *p = isolated_probe(f->app.isolated);

	need_namespaces(f);
	if (p->setpriv) {
		assert_int_equal(chmod(f->workspace, 0777), 0);
		create_ok(f, "overlay", ",\"uid\":1234,\"gid\":2345");
		expect(f,
		       "id -u; id -g; id -G; grep CapEff /proc/self/status | cut -f 2; touch mine",
		       "1234\n2345\n2345\n0000000000000000\n", 0);
		isolated_delete(f->app.isolated, f->session);
	}
	if (p->userns) {
		create_ok(f, "overlay", ",\"uid\":1234,\"gid\":2345,\"uid_mode\":\"userns\"");
		expect(f, "id -u; id -g; touch mine && rm mine && echo wrote",
		       "1234\n2345\nwrote\n", 0);
	}
}

static void network_can_be_taken_away(void **state)
{
	struct fixture *f = *state;

	create_ok(f, "overlay", ",\"share_net\":false");
	expect(f,
	       "grep -c : /proc/net/dev; (exec 3<>/dev/tcp/127.0.0.1/1) 2>&1 | grep -q refused && "
	       "echo "
	       "refused",
	       "1\nrefused\n", 0);
}

static void state_stays_between_runs(void **state)
{
	struct fixture *f = *state;

	create_ok(f, "overlay", "");
	expect(f, "export A=1; f() { echo func; }; cd /usr", "", 0);
	expect(f, "echo $A; f; pwd", "1\nfunc\n/usr\n", 0);
	expect(f, "exit 4", "", 4);
	expect(f, "echo $A; pwd", "1\n/usr\n", 0);
}

static void poll_run(void *arg)
{
	struct fixture *f = arg;

	if (f->session->runs->finished_ns)
		loop_stop(f->app.loop);
}

static void background_runs_have_logs(void **state)
{
	struct fixture *f = *state;
	struct isolated_run *r;
	struct shell_job job = {.command = VIEW("echo $A; cat; echo two; exit 3")};
	struct err e = ERR_NONE;

	create_ok(f, "overlay", "");
	expect(f, "export A=from-session", "", 0);
	assert_int_equal(isolated_run_start(f->session, &job, &r, &e), 0);
	expect(f, "echo meanwhile", "meanwhile\n", 0);
	f->poll = loop_timer_new(f->app.loop, poll_run, f);
	loop_timer_repeat(f->poll, 10);
	wait_stop(f);
	loop_timer_free(f->poll);
	assert_int_equal(r->exit_code, 3);
	buf_clear(&f->out);
	assert_int_equal(isolated_log_read(&r->log, 5, &f->out, &e), 0);
	assert_string_equal(buf_str(&f->out), "session\ntwo\n");
	assert_int_equal(r->log.total, 17);
}

static void everything_dies_with_the_session(void **state)
{
	struct fixture *f = *state;
	char fifo[100], c;
	int fd;

	create_ok(f, "rw", "");
	snprintf(fifo, sizeof(fifo), "%s/fifo", f->workspace);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	expect(f, "(setsid sleep 600 > fifo) & true", "", 0);
	/* The end of the file is the end of the last writer. */
	expect(f, "until ls -l /proc/[0-9]*/fd 2>/dev/null | grep -q fifo; do :; done", "", 0);
	isolated_delete(f->app.isolated, f->session);
	assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
	assert_int_equal(read(fd, &c, 1), 0);
	fd_close(fd);
}

static void bad_requests_are_refused(void **state)
{
	static const char *const more[] = {
		",\"profile\":\"loose\"",
		",\"uid\":-1",
		",\"gid\":5",
		",\"uid_mode\":\"magic\"",
		",\"extra_writable\":[\"/etc\"]",
		",\"extra_writable\":[\"/no/such/path\"]",
		",\"extra_writable\":[5]",
		",\"binds\":[{\"source\":\"/etc\"}]",
		",\"binds\":[{\"dest\":\"/etc\"}]",
		",\"binds\":[{\"source\":\"/etc/passwd\",\"dest\":\"/etc\",\"readonly\":true}]",
		",\"env_passthrough\":{\"mode\":\"some\"}",
		",\"idle_timeout_seconds\":-5",
	};
	struct fixture *f = *state;
	struct err e = ERR_NONE;

	need_namespaces(f);
	for (size_t i = 0; i < ARRAY_LEN(more); i++)
		assert_int_equal(create(f, "overlay", more[i], &e), -EINVAL);
	assert_int_equal(create(f, "sideways", "", &e), -EINVAL);
	assert_int_equal(isolated_create(f->app.isolated, VIEW("{}"), &f->session, &e), -EINVAL);
	assert_int_equal(isolated_create(f->app.isolated, VIEW("["), &f->session, &e), -EINVAL);
}

static void binds_and_extra_paths_are_mounted(void **state)
{
	struct fixture *f = *state;
	char more[512], path[128];

	need_namespaces(f);
	snprintf(path, sizeof(path), "%s/extra", f->dir);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(more, sizeof(more),
		 ",\"extra_writable\":[\"%s\"],\"binds\":[{\"source\":\"/etc\",\"dest\":\"/mnt\","
		 "\"readonly\":true}]",
		 path);
	create_ok(f, "overlay", more);
	expect(f, "echo x > ../extra/file && cat ../extra/file && head -c 4 /mnt/passwd && echo",
	       "x\nroot\n", 0);
	run(f, "touch /mnt/x");
	assert_int_not_equal(f->end.code, 0);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(overlay_keeps_changes_from_the_workspace),
		TEST(commit_applies_changes),
		TEST(modes_decide_who_may_write),
		TEST(the_rest_of_the_world_is_read_only),
		TEST(profiles_differ_in_tmp_and_secrets),
		TEST(users_are_real_or_mapped),
		TEST(network_can_be_taken_away),
		TEST(state_stays_between_runs),
		TEST(background_runs_have_logs),
		TEST(everything_dies_with_the_session),
		TEST(bad_requests_are_refused),
		TEST(binds_and_extra_paths_are_mounted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
