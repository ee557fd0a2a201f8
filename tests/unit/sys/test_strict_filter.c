/*
 * The filter for started programs, in the kernel that judges it: a child tries each call.
 *
 * Every call has arguments that the kernel would refuse too, but with another error.
 */
#include "sys/strict_filter.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/macro.h"

struct attempt {
	const char *name;
	long number;
	unsigned long args[3];
	int error; /* 0: whatever it is, it is not the filter's EPERM */
};

#define REFUSED(call)                                                                              \
	{                                                                                          \
#call, SYS_##call, {(unsigned long)-1, (unsigned long)-1, 0 }, EPERM               \
	}

static const struct attempt attempts[] = {
	REFUSED(setns),
	REFUSED(mount),
	REFUSED(umount2),
	REFUSED(pivot_root),
	REFUSED(open_tree),
	REFUSED(move_mount),
	REFUSED(fsopen),
	REFUSED(fsconfig),
	REFUSED(fsmount),
	REFUSED(fspick),
	REFUSED(mount_setattr),
	REFUSED(open_by_handle_at),
	REFUSED(add_key),
	REFUSED(keyctl),
	REFUSED(request_key),
	REFUSED(bpf),
	REFUSED(perf_event_open),
	REFUSED(userfaultfd),
	REFUSED(io_uring_setup),
	REFUSED(io_uring_enter),
	REFUSED(io_uring_register),
	REFUSED(init_module),
	REFUSED(finit_module),
	REFUSED(delete_module),
	REFUSED(kexec_load),
	REFUSED(kexec_file_load),
	REFUSED(reboot),
	REFUSED(syslog),
	REFUSED(swapon),
	REFUSED(swapoff),
	REFUSED(acct),
	REFUSED(quotactl),
	REFUSED(settimeofday),
	REFUSED(clock_settime),
	{"clone3", SYS_clone3, {0, 0, 0}, ENOSYS},
	{"clone, a user namespace", SYS_clone, {CLONE_NEWUSER | SIGCHLD, 0, 0}, EPERM},
	{"clone, a mount namespace", SYS_clone, {CLONE_NEWNS | CLONE_FS | SIGCHLD, 0, 0}, EPERM},
	{"unshare, a time namespace", SYS_unshare, {0x80, 0, 0}, EPERM},
	{"unshare, a network", SYS_unshare, {CLONE_NEWNET | CLONE_FILES, 0, 0}, EPERM},
	{"unshare, descriptors", SYS_unshare, {CLONE_FILES, 0, 0}, 0},
	{"ioctl, typing", SYS_ioctl, {0, TIOCSTI, 0}, EPERM},
	/* The kernel looks at 32 bits of it, and so must the filter. */
	{"ioctl, typing in disguise", SYS_ioctl, {0, TIOCSTI | 1UL << 32, 0}, EPERM},
	{"ioctl, a size", SYS_ioctl, {(unsigned long)-1, TIOCGWINSZ, 0}, 0},
	{"chroot", SYS_chroot, {0, 0, 0}, 0},
	{"getpid", SYS_getpid, {0, 0, 0}, 0},
	{"read", SYS_read, {(unsigned long)-1, 0, 0}, 0},
	{"ptrace", SYS_ptrace, {(unsigned long)-1, (unsigned long)-1, 0}, 0},
	{"a call of the future", 4000, {0, 0, 0}, ENOSYS},
#ifdef __x86_64__
	{"a call of x32", 0x40000000 + SYS_getpid, {0, 0, 0}, ENOSYS},
#endif
};

static int lock_up(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW,
			    strict_filter());
}

/* In a child: the number of the first attempt that went wrong + 1, or 0. */
static int try_all(void)
{
	if (lock_up() < 0)
		return 255;
	for (size_t i = 0; i < ARRAY_LEN(attempts); i++) {
		const struct attempt *a = &attempts[i];
		long r;

		errno = 0;
		r = syscall(a->number, a->args[0], a->args[1], a->args[2], 0, 0);
		if (a->error ? r != -1 || errno != a->error : errno == EPERM)
			return (int)i + 1;
	}
	return 0;
}

static int in_child(int (*fn)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(fn());
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void what_sandboxed_programs_need_not_is_refused(void **state)
{
	int status = in_child(try_all);

	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 255)
		fail_msg("the kernel does not take the filter");
	if (WEXITSTATUS(status) > 0)
		fail_msg("%s", attempts[WEXITSTATUS(status) - 1].name);
}

static int fork_and_exec(void)
{
	char *const argv[] = {(char *)"true", NULL}, *const env[] = {NULL};
	int status;
	pid_t pid;

	if (lock_up() < 0 || (pid = fork()) < 0)
		return 255;
	if (pid == 0) {
		execve("/bin/true", argv, env);
		_exit(127);
	}
	return waitpid(pid, &status, 0) == pid ? WEXITSTATUS(status) : 254;
}

static void programs_are_still_started(void **state)
{
	assert_int_equal(in_child(fork_and_exec), 0);
}

#ifdef __x86_64__
static int call_as_i386(void)
{
	long r;

	if (lock_up() < 0)
		return 255;
	__asm__ volatile("int $0x80" : "=a"(r) : "a"(20L /* getpid */) : "memory");
	return 1;
}

static void the_calls_of_another_architecture_kill(void **state)
{
	int status = in_child(call_as_i386);

	/* A kernel without them kills as well. */
	assert_true(WIFSIGNALED(status));
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_sandboxed_programs_need_not_is_refused),
		cmocka_unit_test(programs_are_still_started),
#ifdef __x86_64__
		cmocka_unit_test(the_calls_of_another_architecture_kill),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
