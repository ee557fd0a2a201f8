/*
 * sys/allow_list.c - libseccomp in the one way that our programs use it.
 */
#include "sys/allow_list.h"

#include <errno.h>
#include <sched.h>

#include "base/err.h"

/* Every kind of new namespace; clone(2) has none for time. */
#define NEW_NAMESPACES                                                                             \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
	 CLONE_NEWPID | CLONE_NEWNET)

/* What every program needs: memory, time, signals, its own threads, descriptors and ids. */
static const char *const always[] = {
	"brk",
	"clock_getres",
	"clock_gettime",
	"clock_nanosleep",
	"close",
	"exit",
	"exit_group",
	"fcntl",
	"fstat",
	"futex",
	"getegid",
	"geteuid",
	"getgid",
	"getpid",
	"getppid",
	"getrandom",
	"getrlimit",
	"getrusage",
	"gettid",
	"gettimeofday",
	"getuid",
	"lseek",
	"madvise",
	"mmap",
	"mprotect",
	"mremap",
	"munmap",
	"nanosleep",
	"poll",
	"ppoll",
	"read",
	"readv",
	"restart_syscall",
	"rseq",
	"rt_sigaction",
	"rt_sigprocmask",
	"rt_sigreturn",
	"sched_yield",
	"set_robust_list",
	"sigaltstack",
	"sysinfo",
	"time",
	"uname",
	"write",
	"writev",
};

static int allow_named(scmp_filter_ctx ctx, const char *const *names, size_t names_n, struct err *e)
{
	for (size_t i = 0; i < names_n; i++) {
		int r, nr = seccomp_syscall_resolve_name(names[i]);

		if (nr == __NR_SCMP_ERROR)
			continue; /* newer than the library */
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 0);
		if (r < 0)
			return err_set(e, r, "allow %s", names[i]);
	}
	return 0;
}

int allow_list_when(scmp_filter_ctx ctx, int call, struct scmp_arg_cmp condition)
{
	return seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, call, 1, &condition);
}

/* clone3 hides its flags, and libraries know how to do without. */
int allow_list_threads(scmp_filter_ctx ctx)
{
	int r = allow_list_when(
		ctx, SCMP_SYS(clone),
		SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD | NEW_NAMESPACES, CLONE_THREAD));

	if (r == 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (r == 0)
		r = allow_list_when(ctx, SCMP_SYS(prlimit64), SCMP_A2(SCMP_CMP_EQ, 0, 0));
	return r;
}

int allow_list_apply(const char *const *names, size_t names_n, allow_list_fn *more, struct err *e)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int r;

	if (!ctx)
		return err_set(e, -ENOMEM, "seccomp_init");
	/* A binary search instead of a chain: the filter runs on every system call. */
	(void)seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	r = allow_named(ctx, always, ARRAY_LEN(always), e);
	if (r == 0)
		r = allow_named(ctx, names, names_n, e);
	if (r == 0) {
		r = more(ctx);
		if (r == 0)
			r = seccomp_load(ctx);
		if (r < 0)
			err_set(e, r, "load the system call filter: error %d", -r);
	}
	seccomp_release(ctx);
	return r < 0 ? r : 0;
}
