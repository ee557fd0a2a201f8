/*
 * test_fetch_confine.c - what a process that speaks with registries can no longer do.
 *
 * Each attempt is made by a child that has confined itself, with a directory as descriptor 4.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "imager/fetch.h"
#include "imager/job.h"
#include "imager/options.h"

static char dir[PATH_MAX];
static int parent;
static bool has_landlock;

static int make_dir(void **state)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%s/osb-confine.XXXXXX", tmp ? tmp : "/tmp");
	parent = getpid();
	has_landlock = syscall(SYS_landlock_create_ruleset, NULL, 0, 1) >= 1;
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	return rmdir(dir);
}

/* Each returns whether it was refused. */

static bool refused(long result)
{
	return result < 0 && (errno == EPERM || errno == EACCES || errno == ENOSYS);
}

static bool programs(void)
{
	return refused(execl("/bin/true", "true", NULL));
}

static bool processes(void)
{
	return refused(fork());
}

static bool tracing(void)
{
	return refused(ptrace(PTRACE_ATTACH, parent, NULL, NULL));
}

static bool mounts(void)
{
	return refused(mount("tmpfs", "/tmp", "tmpfs", 0, NULL));
}

static bool signals(void)
{
	return refused(kill(parent, SIGCONT));
}

static bool unix_sockets(void)
{
	return refused(socket(AF_UNIX, SOCK_STREAM, 0));
}

static bool packet_sockets(void)
{
	return refused(socket(AF_PACKET, SOCK_RAW, 0));
}

static bool raw_sockets(void)
{
	return refused(socket(AF_INET, SOCK_RAW, IPPROTO_RAW));
}

static bool other_users(void)
{
	return refused(setuid(0)) && refused(setgid(0));
}

static bool files_elsewhere(void)
{
	if (!has_landlock)
		return true;
	return refused(open("/tmp", O_RDONLY | O_DIRECTORY)) &&
	       refused(open("/proc/self/maps", O_RDONLY)) && refused(open("/etc/passwd", O_RDWR)) &&
	       refused(openat(JOB_DIR_FD, "../x", O_RDWR | O_CREAT, 0600));
}

static bool links_and_nodes(void)
{
	return refused(symlinkat("x", JOB_DIR_FD, "y")) &&
	       refused(mkdirat(JOB_DIR_FD, "y", 0700)) &&
	       refused(mknodat(JOB_DIR_FD, "y", S_IFIFO | 0600, 0)) &&
	       refused(fchmodat(JOB_DIR_FD, ".", 0777, 0));
}

/* What it needs is left. */
static bool work(void)
{
	int file = openat(JOB_DIR_FD, "blob.part", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int certificates = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return file >= 0 && certificates >= 0 && tcp >= 0 && write(file, "x", 1) == 1 &&
	       ftruncate(file, 0) == 0 &&
	       renameat(JOB_DIR_FD, "blob.part", JOB_DIR_FD, "blob") == 0 &&
	       unlinkat(JOB_DIR_FD, "blob", 0) == 0;
}

static int confined(bool (*attempt)(void))
{
	struct options o = {.mode = "fetch"};
	struct err e = ERR_NONE;
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || dup2(fd, JOB_DIR_FD) < 0)
		return 2;
	if (fetch_confine(&o, &e) < 0) {
		dprintf(2, "%s\n", e.msg);
		return 3;
	}
	return attempt() ? 0 : 1;
}

static void loses_what_it_does_not_need(void **state)
{
	static const struct {
		const char *name;
		bool (*attempt)(void);
	} cases[] = {
		{"programs", programs},
		{"processes", processes},
		{"tracing", tracing},
		{"mounts", mounts},
		{"signals", signals},
		{"unix sockets", unix_sockets},
		{"packet sockets", packet_sockets},
		{"raw sockets", raw_sockets},
		{"other users", other_users},
		{"files elsewhere", files_elsewhere},
		{"links and nodes", links_and_nodes},
		{"work", work},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		pid_t pid = fork();
		int status;

		assert_true(pid >= 0);
		if (pid == 0)
			_exit(confined(cases[i].attempt));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			fail_msg("%s: status %x", cases[i].name, status);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(loses_what_it_does_not_need, make_dir, remove_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
