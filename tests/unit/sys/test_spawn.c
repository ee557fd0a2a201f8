/*
 * Spawning: the program gets exactly what was asked for, and a failing step tells its own cause.
 */
#include "sys/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"

#define DEADLINE_MS 30000
#define SH(script)  ((char *[]){(char *)"sh", (char *)"-c", (char *)(script), NULL})

static char *const no_env[] = {(char *)"PATH=/usr/bin:/bin", NULL};

/* Waits for the end through the pidfd, as the loop does. */
static int wait_for(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	int status = -1;

	assert_int_equal(poll(&p, 1, DEADLINE_MS), 1);
	assert_int_equal(spawn_peek(pidfd, &status), 0);
	assert_int_equal(spawn_reap(pidfd, &status), 0);
	assert_int_equal(spawn_reap(pidfd, &status), -ECHILD);
	close(pidfd);
	return status;
}

/* Runs `s` with a pipe as stdout and returns its status; what it printed is in `text`. */
static int run(struct spawn *s, char *text, size_t size)
{
	struct err e = ERR_NONE;
	int fds[2], pidfd;
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	s->fds[1] = fds[1];
	if (spawn(s, &pid, &pidfd, &e) < 0)
		fail_msg("%s", e.msg);
	close(fds[1]);
	while ((n = read(fds[0], text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	close(fds[0]);
	return wait_for(pidfd);
}

static void a_status_is_that_of_waitpid(void **state)
{
	static const struct {
		const char *script;
		int status;
	} cases[] = {
		{"exit 0", W_EXITCODE(0, 0)},
		{"exit 42", W_EXITCODE(42, 0)},
		{"kill -KILL $$", SIGKILL},
		{"kill -TERM $$", SIGTERM},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct spawn s = {.argv = SH(cases[i].script), .env = no_env, .fds = {-1, -1, -1}};
		char text[64];

		assert_int_equal(run(&s, text, sizeof(text)), cases[i].status);
	}
}

static void a_running_child_is_not_reaped(void **state)
{
	struct spawn s = {.argv = SH("exec sleep 100"), .env = no_env, .fds = {-1, -1, -1}};
	struct err e = ERR_NONE;
	int pidfd, status;
	pid_t pid;

	assert_int_equal(spawn(&s, &pid, &pidfd, &e), 0);
	assert_int_equal(spawn_reap(pidfd, &status), -EAGAIN);
	assert_int_equal(spawn_peek(pidfd, &status), -EAGAIN);
	assert_int_equal(getpgid(pid), pid);
	assert_int_equal(kill(-pid, SIGKILL), 0);
	assert_int_equal(wait_for(pidfd), SIGKILL);
}

static void environment_and_directory_are_as_given(void **state)
{
	struct spawn s = {
		.argv = SH("echo $A; pwd; cat"),
		.env = (char *[]){(char *)"A=b c", (char *)"PATH=/usr/bin:/bin", NULL},
		.cwd = "/usr",
		.fds = {-1, -1, -1},
	};
	char text[64];

	assert_int_equal(run(&s, text, sizeof(text)), 0);
	assert_string_equal(text, "b c\n/usr\n");
}

static void signals_are_those_of_a_fresh_program(void **state)
{
	struct spawn s = {
		.argv = SH("grep -E '^Sig(Blk|Ign)' /proc/self/status"),
		.env = no_env,
		.fds = {-1, -1, -1},
	};
	/* 32 and 33 are the C library's own: no program can set them, posix_spawn(3) ignores them.
	 */
	const unsigned long long internal = 3ULL << 31;
	unsigned long long blocked = 1, ignored = 1;
	sigset_t usr1, before;
	char text[128];

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, &before);
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(run(&s, text, sizeof(text)), 0);
	signal(SIGPIPE, SIG_DFL);
	assert_int_equal(sscanf(text, "SigBlk:\t%llx\nSigIgn:\t%llx\n", &blocked, &ignored), 2);
	assert_true(blocked == 0);
	assert_true((ignored & ~internal) == 0);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

static void only_the_named_descriptors_are_passed(void **state)
{
	int open_fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	int extra[2] = {open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), 0};
	struct spawn s = {
		.argv = SH("readlink /proc/self/fd/3; test -e /proc/self/fd/4 && echo four;"
			   "test -e /proc/self/fd/5 || echo none"),
		.env = no_env,
		.fds = {-1, -1, -1},
		.extra_fds = extra,
		.extra_fds_n = 2,
	};
	char text[128];

	assert_true(open_fd >= 0 && extra[0] >= 0);
	assert_int_equal(run(&s, text, sizeof(text)), 0);
	assert_string_equal(text, "/\nfour\nnone\n");
	close(open_fd);
	close(extra[0]);
}

/* The wanted numbers are those of other wanted ones: 1 and 2 change places. */
static void descriptors_may_change_places(void **state)
{
	struct spawn s = {.argv = SH("echo out; echo err >&2"), .env = no_env, .fds = {-1, 2, 1}};
	int out[2], err[2], saved[2] = {dup(1), dup(2)}, pidfd;
	struct err e = ERR_NONE;
	char text[16] = "";
	pid_t pid;
	int r;

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(err, O_CLOEXEC), 0);
	fflush(stdout);
	fflush(stderr);
	dup2(out[1], 1);
	dup2(err[1], 2);
	r = spawn(&s, &pid, &pidfd, &e);
	dup2(saved[0], 1);
	dup2(saved[1], 2);
	assert_int_equal(r, 0);
	assert_int_equal(wait_for(pidfd), 0);
	assert_int_equal(read(out[0], text, sizeof(text)), 4);
	assert_memory_equal(text, "err\n", 4);
	assert_int_equal(read(err[0], text, sizeof(text)), 4);
	assert_memory_equal(text, "out\n", 4);
	for (int i = 0; i < 2; i++) {
		close(out[i]);
		close(err[i]);
		close(saved[i]);
	}
}

static void a_session_has_its_own_leader(void **state)
{
	struct spawn s = {
		.argv = SH("set -- $(cat /proc/self/stat); test $5 = $6 && echo leads"),
		.env = no_env,
		.fds = {-1, -1, -1},
		.flags = SPAWN_SESSION,
	};
	char text[16];

	assert_int_equal(run(&s, text, sizeof(text)), 0);
	assert_string_equal(text, "leads\n");
}

static void identity_is_taken_on(void **state)
{
	static const gid_t groups[] = {1234, 4321};
	struct spawn s = {
		.argv = SH("id -u; id -g; id -G; grep NoNewPrivs /proc/self/status"),
		.env = no_env,
		.fds = {-1, -1, -1},
		.flags = SPAWN_IDS | SPAWN_NO_NEW_PRIVS,
		.uid = 1001,
		.gid = 1002,
		.groups = groups,
		.groups_n = 2,
	};
	char text[128];

	if (geteuid() != 0)
		skip();
	assert_int_equal(run(&s, text, sizeof(text)), 0);
	assert_string_equal(text, "1001\n1002\n1002 1234 4321\nNoNewPrivs:\t1\n");
}

static void a_failing_step_tells_its_cause(void **state)
{
	static const struct {
		const char *name, *path, *search_path, *cwd, *message;
		int code;
	} cases[] = {
		{"no-such-program", NULL, "/usr/bin:/bin", NULL,
		 "exec 'no-such-program': not found in PATH", -ENOENT},
		{"sh", NULL, "bin:.:", NULL, "exec 'sh': not found in PATH", -ENOENT},
		{"x", "/no/such/file", NULL, NULL,
		 "exec '/no/such/file': No such file or directory", -ENOENT},
		{"/etc/passwd", NULL, NULL, NULL, "exec '/etc/passwd': Permission denied", -EACCES},
		{"./sh", NULL, NULL, "/etc", "exec './sh': No such file or directory", -ENOENT},
		{"sh", NULL, NULL, "/no/such/dir",
		 "chdir '/no/such/dir': No such file or directory", -ENOENT},
		{"sh", NULL, NULL, "/etc/passwd", "chdir '/etc/passwd': Not a directory", -ENOTDIR},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct spawn s = {
			.argv = (char *[]){(char *)cases[i].name, NULL},
			.path = cases[i].path,
			.search_path = cases[i].search_path,
			.env = no_env,
			.cwd = cases[i].cwd,
			.fds = {-1, -1, -1},
		};
		struct err e = ERR_NONE;
		int pidfd = -1;
		pid_t pid = -1;

		assert_int_equal(spawn(&s, &pid, &pidfd, &e), cases[i].code);
		assert_string_equal(e.msg, cases[i].message);
		assert_int_equal(pidfd, -1);
		/* It left no zombie behind. */
		assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	}
}

static void a_relative_program_is_found_in_its_directory(void **state)
{
	struct spawn s = {
		.argv = (char *[]){(char *)"./sh", (char *)"-c", (char *)"echo yes", NULL},
		.env = no_env,
		.cwd = "/bin",
		.fds = {-1, -1, -1},
	};
	char text[16];

	assert_int_equal(run(&s, text, sizeof(text)), 0);
	assert_string_equal(text, "yes\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_status_is_that_of_waitpid),
		cmocka_unit_test(a_running_child_is_not_reaped),
		cmocka_unit_test(environment_and_directory_are_as_given),
		cmocka_unit_test(signals_are_those_of_a_fresh_program),
		cmocka_unit_test(only_the_named_descriptors_are_passed),
		cmocka_unit_test(descriptors_may_change_places),
		cmocka_unit_test(a_session_has_its_own_leader),
		cmocka_unit_test(identity_is_taken_on),
		cmocka_unit_test(a_failing_step_tells_its_cause),
		cmocka_unit_test(a_relative_program_is_found_in_its_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
