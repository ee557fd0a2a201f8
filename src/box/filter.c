/*
 * box/filter.c - which system calls exist inside a sandbox.
 *
 * An allow-list: what is not named here fails with EPERM, and what is newer than the library that
 * compiles it with ENOSYS, as programs that probe for new calls expect.  libseccomp compiles it
 * once; the bytes are applied in each child.
 */
#include "box/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"

/* A rule of the allow-list cannot say "all but this value", so the exceptions are a second program:
 * the kernel runs both, and the stricter answer counts. */
enum program { PROGRAM_ALLOW, PROGRAM_EXCEPT, PROGRAMS_ };

struct filter {
	struct sock_fprog programs[PROGRAMS_];
};

/* Files, memory, processes, time, sockets: what ordinary programs are made of. */
static const char *const allowed[] = {
	"_llseek",
	"_newselect",
	"accept",
	"accept4",
	"access",
	"alarm",
	"arch_prctl",
	"bind",
	"brk",
	"cachestat",
	"capget",
	"capset",
	"chdir",
	"chmod",
	"chown",
	"chown32",
	"clock_adjtime",
	"clock_getres",
	"clock_gettime",
	"clock_nanosleep",
	"clone",
	"clone3",
	"close",
	"close_range",
	"connect",
	"copy_file_range",
	"creat",
	"dup",
	"dup2",
	"dup3",
	"epoll_create",
	"epoll_create1",
	"epoll_ctl",
	"epoll_pwait",
	"epoll_pwait2",
	"epoll_wait",
	"eventfd",
	"eventfd2",
	"execve",
	"execveat",
	"exit",
	"exit_group",
	"faccessat",
	"faccessat2",
	"fadvise64",
	"fadvise64_64",
	"fallocate",
	"fanotify_mark",
	"fchdir",
	"fchmod",
	"fchmodat",
	"fchmodat2",
	"fchown",
	"fchown32",
	"fchownat",
	"fcntl",
	"fcntl64",
	"fdatasync",
	"fgetxattr",
	"flistxattr",
	"flock",
	"fork",
	"fremovexattr",
	"fsetxattr",
	"fstat",
	"fstat64",
	"fstatat64",
	"fstatfs",
	"fstatfs64",
	"fsync",
	"ftruncate",
	"ftruncate64",
	"futex",
	"futex_requeue",
	"futex_wait",
	"futex_waitv",
	"futex_wake",
	"futimesat",
	"get_robust_list",
	"get_thread_area",
	"getcpu",
	"getcwd",
	"getdents",
	"getdents64",
	"getegid",
	"getegid32",
	"geteuid",
	"geteuid32",
	"getgid",
	"getgid32",
	"getgroups",
	"getgroups32",
	"getitimer",
	"getpeername",
	"getpgid",
	"getpgrp",
	"getpid",
	"getppid",
	"getpriority",
	"getrandom",
	"getresgid",
	"getresgid32",
	"getresuid",
	"getresuid32",
	"getrlimit",
	"getrusage",
	"getsid",
	"getsockname",
	"getsockopt",
	"gettid",
	"gettimeofday",
	"getuid",
	"getuid32",
	"getxattr",
	"getxattrat",
	"inotify_add_watch",
	"inotify_init",
	"inotify_init1",
	"inotify_rm_watch",
	"ioctl",
	"ioprio_get",
	"ioprio_set",
	"ipc",
	"kill",
	"landlock_add_rule",
	"landlock_create_ruleset",
	"landlock_restrict_self",
	"lchown",
	"lchown32",
	"lgetxattr",
	"link",
	"linkat",
	"listen",
	"listmount",
	"listxattr",
	"listxattrat",
	"llistxattr",
	"lremovexattr",
	"lseek",
	"lsetxattr",
	"lstat",
	"lstat64",
	"madvise",
	"map_shadow_stack",
	"membarrier",
	"memfd_create",
	"memfd_secret",
	"mincore",
	"mkdir",
	"mkdirat",
	"mknod",
	"mknodat",
	"mlock",
	"mlock2",
	"mlockall",
	"mmap",
	"mmap2",
	"mprotect",
	"mq_getsetattr",
	"mq_notify",
	"mq_open",
	"mq_timedreceive",
	"mq_timedsend",
	"mq_unlink",
	"mremap",
	"mseal",
	"msgctl",
	"msgget",
	"msgrcv",
	"msgsnd",
	"msync",
	"munlock",
	"munlockall",
	"munmap",
	"nanosleep",
	"newfstatat",
	"open",
	"openat",
	"openat2",
	"pause",
	"pidfd_open",
	"pidfd_send_signal",
	"pipe",
	"pipe2",
	"pkey_alloc",
	"pkey_free",
	"pkey_mprotect",
	"poll",
	"ppoll",
	"prctl",
	"pread64",
	"preadv",
	"preadv2",
	"prlimit64",
	"process_mrelease",
	"pselect6",
	"pwrite64",
	"pwritev",
	"pwritev2",
	"read",
	"readahead",
	"readlink",
	"readlinkat",
	"readv",
	"recv",
	"recvfrom",
	"recvmmsg",
	"recvmsg",
	"remap_file_pages",
	"removexattr",
	"removexattrat",
	"rename",
	"renameat",
	"renameat2",
	"restart_syscall",
	"riscv_flush_icache",
	"riscv_hwprobe",
	"rmdir",
	"rseq",
	"rt_sigaction",
	"rt_sigpending",
	"rt_sigprocmask",
	"rt_sigqueueinfo",
	"rt_sigreturn",
	"rt_sigsuspend",
	"rt_sigtimedwait",
	"rt_tgsigqueueinfo",
	"sched_get_priority_max",
	"sched_get_priority_min",
	"sched_getaffinity",
	"sched_getattr",
	"sched_getparam",
	"sched_getscheduler",
	"sched_rr_get_interval",
	"sched_setaffinity",
	"sched_setattr",
	"sched_setparam",
	"sched_setscheduler",
	"sched_yield",
	"seccomp",
	"select",
	"semctl",
	"semget",
	"semop",
	"semtimedop",
	"send",
	"sendfile",
	"sendfile64",
	"sendmmsg",
	"sendmsg",
	"sendto",
	"set_robust_list",
	"set_thread_area",
	"set_tid_address",
	"setfsgid",
	"setfsgid32",
	"setfsuid",
	"setfsuid32",
	"setgid",
	"setgid32",
	"setgroups",
	"setgroups32",
	"setitimer",
	"setpgid",
	"setpriority",
	"setregid",
	"setregid32",
	"setresgid",
	"setresgid32",
	"setresuid",
	"setresuid32",
	"setreuid",
	"setreuid32",
	"setrlimit",
	"setsid",
	"setsockopt",
	"setuid",
	"setuid32",
	"setxattr",
	"setxattrat",
	"shmat",
	"shmctl",
	"shmdt",
	"shmget",
	"shutdown",
	"sigaltstack",
	"signalfd",
	"signalfd4",
	"sigprocmask",
	"sigreturn",
	"socketcall",
	"socketpair",
	"splice",
	"stat",
	"stat64",
	"statfs",
	"statfs64",
	"statmount",
	"statx",
	"symlink",
	"symlinkat",
	"sync",
	"sync_file_range",
	"syncfs",
	"sysinfo",
	"tee",
	"tgkill",
	"time",
	"timer_create",
	"timer_delete",
	"timer_getoverrun",
	"timer_gettime",
	"timer_settime",
	"timerfd_create",
	"timerfd_gettime",
	"timerfd_settime",
	"times",
	"tkill",
	"truncate",
	"truncate64",
	"ugetrlimit",
	"umask",
	"uname",
	"unlink",
	"unlinkat",
	"uretprobe",
	"utime",
	"utimensat",
	"utimes",
	"vfork",
	"vmsplice",
	"wait4",
	"waitid",
	"waitpid",
	"write",
	"writev",
	/* What execd needs for sessions isolated inside the sandbox.  They act on its own user
	 * namespace only, and execd forbids them to whatever it starts. */
	"chroot",
	"fsconfig",
	"fsmount",
	"fsopen",
	"fspick",
	"mount",
	"mount_setattr",
	"move_mount",
	"open_tree",
	"pivot_root",
	"setns",
	"umount2",
	"unshare",
	/* Tracing works between processes of one sandbox, which share a user namespace anyway. */
	"kcmp",
	"pidfd_getfd",
	"process_madvise",
	"process_vm_readv",
	"process_vm_writev",
	"ptrace",
};

/* TIOCSTI types into a terminal, TIOCLINUX into a console: both have been ways out. */
#define IOCTL_TIOCSTI	0x5412
#define IOCTL_TIOCLINUX 0x541c

/* Numbers that this C library does not name. */
#define PROTOCOL_L2TP 115
#define PROTOCOL_SMC  256

/* Of most arguments the kernel looks at the low 32 bits only, so a comparison does too. */
#define LOW_HALF 0xffffffffu

static int allow(scmp_filter_ctx ctx, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(allowed); i++) {
		int nr = seccomp_syscall_resolve_name(allowed[i]);
		int r;

		if (nr == __NR_SCMP_ERROR)
			continue; /* of another architecture, or newer than the library */
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 0);
		if (r < 0)
			return err_set(e, r, "seccomp rule for %s", allowed[i]);
	}
	return 0;
}

/* Sockets of the families that ordinary programs use; vsock reaches the hypervisor, packet and xdp
 * the wire. */
static int allow_sockets(scmp_filter_ctx ctx, struct err *e)
{
	static const int families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

	for (size_t i = 0; i < ARRAY_LEN(families); i++) {
		int r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
					 SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)families[i], 0));

		if (r < 0)
			return err_set(e, r, "seccomp rule for sockets");
	}
	return 0;
}

/* No switching off of address randomisation: only the harmless personalities. */
static int allow_personalities(scmp_filter_ctx ctx, struct err *e)
{
	static const unsigned personalities[] = {0x0, 0x0008, 0x20000, 0x20008, 0xffffffff};

	for (size_t i = 0; i < ARRAY_LEN(personalities); i++) {
		int r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(personality), 1,
					 SCMP_A0(SCMP_CMP_EQ, personalities[i], 0));

		if (r < 0)
			return err_set(e, r, "seccomp rule for personalities");
	}
	return 0;
}

static int except_ioctls(scmp_filter_ctx ctx, struct err *e)
{
	static const unsigned ioctls[] = {IOCTL_TIOCSTI, IOCTL_TIOCLINUX};

	for (size_t i = 0; i < ARRAY_LEN(ioctls); i++) {
		int r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
					 SCMP_A1(SCMP_CMP_MASKED_EQ, LOW_HALF, ioctls[i]));

		if (r < 0)
			return err_set(e, r, "seccomp rule for ioctl");
	}
	return 0;
}

/* Protocols that load modules or listen to the host's devices: not compiled in, as far as programs
 * can tell. */
static int except_protocols(scmp_filter_ctx ctx, struct err *e)
{
	static const struct {
		unsigned family, protocol;
	} table[] = {
		{AF_INET, IPPROTO_DCCP},
		{AF_INET, PROTOCOL_L2TP},
		{AF_INET, IPPROTO_SCTP},
		{AF_INET, IPPROTO_UDPLITE},
		{AF_INET, PROTOCOL_SMC},
		{AF_INET6, IPPROTO_DCCP},
		{AF_INET6, PROTOCOL_L2TP},
		{AF_INET6, IPPROTO_SCTP},
		{AF_INET6, IPPROTO_UDPLITE},
		{AF_INET6, PROTOCOL_SMC},
		{AF_NETLINK, NETLINK_USERSOCK},
		{AF_NETLINK, NETLINK_XFRM},
		{AF_NETLINK, NETLINK_SELINUX},
		{AF_NETLINK, NETLINK_ISCSI},
		{AF_NETLINK, NETLINK_AUDIT},
		{AF_NETLINK, NETLINK_FIB_LOOKUP},
		{AF_NETLINK, NETLINK_CONNECTOR},
		{AF_NETLINK, NETLINK_NETFILTER},
		{AF_NETLINK, NETLINK_KOBJECT_UEVENT},
		{AF_NETLINK, NETLINK_SCSITRANSPORT},
		{AF_NETLINK, NETLINK_ECRYPTFS},
		{AF_NETLINK, NETLINK_RDMA},
		{AF_NETLINK, NETLINK_CRYPTO},
		{AF_NETLINK, NETLINK_SMC},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		int r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPROTONOSUPPORT), SCMP_SYS(socket), 2,
					 SCMP_A0(SCMP_CMP_MASKED_EQ, LOW_HALF, table[i].family),
					 SCMP_A2(SCMP_CMP_MASKED_EQ, LOW_HALF, table[i].protocol));

		if (r < 0)
			return err_set(e, r, "seccomp rule for protocols");
	}
	return 0;
}

/* Layers that the kernel puts on a TCP connection (TLS and others) are seldom used and often wrong;
 * programs that it runs on packets take memory that no limit counts. */
static int except_options(scmp_filter_ctx ctx, struct err *e)
{
	static const struct {
		unsigned level, option;
	} table[] = {
		{IPPROTO_TCP, TCP_ULP},
		{SOL_SOCKET, SO_ATTACH_FILTER},
		{SOL_SOCKET, SO_ATTACH_BPF},
		{SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF},
		{SOL_SOCKET, SO_ATTACH_REUSEPORT_EBPF},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		int r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOPROTOOPT), SCMP_SYS(setsockopt), 2,
					 SCMP_A1(SCMP_CMP_MASKED_EQ, LOW_HALF, table[i].level),
					 SCMP_A2(SCMP_CMP_MASKED_EQ, LOW_HALF, table[i].option));

		if (r < 0)
			return err_set(e, r, "seccomp rule for socket options");
	}
	return 0;
}

/* harden.c chose the limit of core dumps.  Lowering it "succeeds", as scripts that do so expect. */
static int except_core_limit(scmp_filter_ctx ctx, struct err *e)
{
	int r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(0), SCMP_SYS(setrlimit), 1,
				 SCMP_A0(SCMP_CMP_MASKED_EQ, LOW_HALF, RLIMIT_CORE));

	if (r == 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(0), SCMP_SYS(prlimit64), 2,
				     SCMP_A1(SCMP_CMP_MASKED_EQ, LOW_HALF, RLIMIT_CORE),
				     SCMP_A2(SCMP_CMP_NE, 0, 0));
	return r < 0 ? err_set(e, r, "seccomp rule for core dumps") : 0;
}

/* Above the newest call that the list knows: "there is no such call", whatever the architecture. */
static size_t answer_unknown(struct sock_filter code[3])
{
	int newest = 0;

	for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
		newest = MAX(newest, seccomp_syscall_resolve_name(allowed[i]));
	code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					       offsetof(struct seccomp_data, nr));
	code[1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, (unsigned)newest, 0, 1);
	code[2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
					       SECCOMP_RET_ERRNO | (ENOSYS & SECCOMP_RET_DATA));
	return 3;
}

static int load(scmp_filter_ctx ctx, enum program which, struct sock_fprog *ret, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	struct sock_filter head[3];
	size_t head_n = which == PROGRAM_ALLOW ? answer_unknown(head) : 0;
	struct stat st;
	int r;

	fd = memfd_create("filter", MFD_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "memfd_create: %m");
	r = seccomp_export_bpf(ctx, fd);
	if (r < 0 || fstat(fd, &st) < 0)
		return err_set(e, r < 0 ? r : -errno, "compile the system call filter");
	ret->filter = mem_alloc((size_t)st.st_size + sizeof(head));
	ret->len = (unsigned short)(head_n + (size_t)st.st_size / sizeof(struct sock_filter));
	memcpy(ret->filter, head, head_n * sizeof(head[0]));
	if (pread(fd, ret->filter + head_n, (size_t)st.st_size, 0) != st.st_size)
		return err_set(e, -EIO, "read the system call filter");
	return 0;
}

static int compile(enum program which, struct sock_fprog *ret, struct err *e)
{
	scmp_filter_ctx ctx =
		seccomp_init(which == PROGRAM_ALLOW ? SCMP_ACT_ERRNO(EPERM) : SCMP_ACT_ALLOW);
	int r = 0;

	if (!ctx)
		return err_set(e, -ENOMEM, "seccomp_init");
	/* A binary search instead of a chain: the filter runs on every system call. */
	(void)seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (which == PROGRAM_ALLOW) {
		r = allow_personalities(ctx, e);
		if (r == 0)
			r = allow_sockets(ctx, e);
		if (r == 0)
			r = allow(ctx, e);
	} else {
		r = except_ioctls(ctx, e);
		if (r == 0)
			r = except_protocols(ctx, e);
		if (r == 0)
			r = except_options(ctx, e);
		if (r == 0)
			r = except_core_limit(ctx, e);
	}
	if (r == 0)
		r = load(ctx, which, ret, e);
	seccomp_release(ctx);
	return r;
}

int filter_new(struct filter **ret, struct err *e)
{
	struct filter *f = mem_new(struct filter);

	for (int i = 0; i < PROGRAMS_; i++) {
		int r = compile((enum program)i, &f->programs[i], e);

		if (r < 0) {
			filter_free(f);
			return r;
		}
	}
	*ret = f;
	return 0;
}

void filter_free(struct filter *f)
{
	if (!f)
		return;
	for (int i = 0; i < PROGRAMS_; i++)
		free(f->programs[i].filter);
	free(f);
}

int filter_apply(const struct filter *f, struct err *e)
{
	/* The exceptions first: once the list is on, nothing here may be missing from it. */
	for (int i = PROGRAMS_ - 1; i >= 0; i--)
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &f->programs[i], 0, 0) < 0)
			return err_set(e, -errno, "prctl: %m");
	return 0;
}
