/*
 * sys/strict_filter.c - a table of calls, assembled into a search tree.
 *
 * The kernel runs the program once for every call number when it is loaded, which happens at each
 * start of a program: a tree keeps that short.
 */
#include "sys/strict_filter.h"

#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "base/macro.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "no system call filter for this architecture"
#endif

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif
#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif

/* clone(2) has the exit signal where unshare(2) has CLONE_NEWTIME. */
#define NEW_BY_CLONE                                                                               \
	((uint32_t)(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |  \
		    CLONE_NEWPID | CLONE_NEWNET))
#define NEW_BY_UNSHARE (NEW_BY_CLONE | CLONE_NEWTIME)

#define X32_CALLS 0x40000000u /* the first of another table of calls */

/* Jumps to one of the ends are written as these distances until the ends have their places. */
enum end { END_ALLOW = 0xf0, END_PERM, END_NOSYS, END_KILL, ENDS_ };

static const uint32_t end_actions[] = {
	[END_ALLOW - END_ALLOW] = SECCOMP_RET_ALLOW,
	[END_PERM - END_ALLOW] = SECCOMP_RET_ERRNO | EPERM,
	[END_NOSYS - END_ALLOW] = SECCOMP_RET_ERRNO | ENOSYS,
	[END_KILL - END_ALLOW] = SECCOMP_RET_KILL_PROCESS,
};

/* The lower half of an argument: flags and ioctl numbers have 32 bits. */
#define ARG(n)	    (offsetof(struct seccomp_data, args) + 8 * (n))
#define NO_ARG	    UINT32_MAX
#define IF_FLAGS(m) BPF_JSET, (m)
#define IF_VALUE(v) BPF_JEQ, (v)

struct rule {
	uint32_t call;
	uint8_t end;
	uint32_t arg; /* where it is, or NO_ARG: whatever they are */
	uint16_t test;
	uint32_t operand;
};

/* clang-format off */
#define DENY(name) {SYS_##name, END_PERM, NO_ARG, 0, 0}

static struct rule rules[] = {
	/* Libraries know how to do without this one, which hides its flags from us. */
	{SYS_clone3, END_NOSYS, NO_ARG, 0, 0},
	{SYS_clone, END_PERM, ARG(0), IF_FLAGS(NEW_BY_CLONE)},
	{SYS_unshare, END_PERM, ARG(0), IF_FLAGS(NEW_BY_UNSHARE)},
	DENY(setns),

	DENY(mount), DENY(umount2), DENY(pivot_root), DENY(open_tree), DENY(open_tree_attr),
	DENY(move_mount), DENY(fsopen), DENY(fsconfig), DENY(fsmount), DENY(fspick),
	DENY(mount_setattr), DENY(open_by_handle_at),

	DENY(add_key), DENY(keyctl), DENY(request_key),
	DENY(bpf), DENY(perf_event_open), DENY(userfaultfd),
	DENY(io_uring_setup), DENY(io_uring_enter), DENY(io_uring_register),

	DENY(init_module), DENY(finit_module), DENY(delete_module),
	DENY(kexec_load), DENY(kexec_file_load), DENY(reboot), DENY(syslog), DENY(vhangup),
	DENY(swapon), DENY(swapoff), DENY(acct), DENY(quotactl), DENY(quotactl_fd),
	DENY(settimeofday), DENY(clock_settime),
#ifdef SYS_iopl
	DENY(iopl), DENY(ioperm),
#endif

	/* Types into a terminal that others read from. */
	{SYS_ioctl, END_PERM, ARG(1), IF_VALUE(TIOCSTI)},
};
/* clang-format on */

static struct sock_filter code[END_ALLOW];
static struct sock_fprog program = {.filter = code};

static struct sock_filter *emit(uint16_t op, uint32_t k, uint8_t jt, uint8_t jf)
{
	struct sock_filter *at = &code[program.len++];

	assert(program.len <= ARRAY_LEN(code));
	*at = (struct sock_filter){.code = op, .k = k, .jt = jt, .jf = jf};
	return at;
}

static void emit_load(size_t offset)
{
	emit(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static struct sock_filter *emit_jump(uint16_t test, uint32_t k, uint8_t jt, uint8_t jf)
{
	return emit(BPF_JMP | BPF_K | test, k, jt, jf);
}

/* Neighbours that end alike are one. */
struct run {
	const struct rule *rule;
	uint32_t last; /* call */
};

static size_t find_runs(struct run ret[])
{
	size_t n = 0;

	for (const struct rule *r = rules; r < rules + ARRAY_LEN(rules); r++) {
		struct run *before = n > 0 ? &ret[n - 1] : NULL;

		if (before && before->rule->end == r->end && before->last + 1 == r->call &&
		    before->rule->arg == NO_ARG && r->arg == NO_ARG)
			before->last++;
		else
			ret[n++] = (struct run){r, r->call};
	}
	return n;
}

/* The call is known to be at least the first of the runs. */
static void emit_tree(const struct run *runs, size_t n)
{
	const struct rule *r = runs->rule;
	struct sock_filter *upper;

	if (n > 1) {
		upper = emit_jump(BPF_JGE, runs[n / 2].rule->call, 0, 0);
		emit_tree(runs, n / 2);
		upper->jt = (uint8_t)(&code[program.len] - (upper + 1));
		emit_tree(runs + n / 2, n - n / 2);
	} else if (r->arg == NO_ARG) {
		emit_jump(BPF_JGT, runs->last, END_ALLOW, r->end);
	} else {
		emit_jump(BPF_JGT, r->call, END_ALLOW, 0);
		emit_load(r->arg);
		emit_jump(r->test, r->operand, r->end, END_ALLOW);
	}
}

static void place(uint8_t *distance, size_t from, const size_t ends[])
{
	if (*distance >= END_ALLOW)
		*distance = (uint8_t)(ends[*distance - END_ALLOW] - from - 1);
}

static void emit_ends(void)
{
	size_t ends[ARRAY_LEN(end_actions)];
	size_t jumps = program.len;

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		ends[i] = program.len;
		emit(BPF_RET | BPF_K, end_actions[i], 0, 0);
	}
	for (size_t i = 0; i < jumps; i++) {
		place(&code[i].jt, i, ends);
		place(&code[i].jf, i, ends);
	}
}

static int by_call(const void *a, const void *b)
{
	const struct rule *x = a, *y = b;

	return (x->call > y->call) - (x->call < y->call);
}

const struct sock_fprog *strict_filter(void)
{
	struct run runs[ARRAY_LEN(rules)];

	if (program.len > 0)
		return &program;
	qsort(rules, ARRAY_LEN(rules), sizeof(rules[0]), by_call);
	emit_load(offsetof(struct seccomp_data, arch));
	emit_jump(BPF_JEQ, ARCH, 0, END_KILL);
	emit_load(offsetof(struct seccomp_data, nr));
	emit_jump(BPF_JGE, X32_CALLS, END_NOSYS, 0);
	emit_jump(BPF_JGE, rules[0].call, 0, END_ALLOW);
	emit_tree(runs, find_runs(runs));
	emit_ends();
	return &program;
}
