/*
 * tests/escape/attempt.c - tries one way out of a sandbox and prints "ok" or the name of the error.
 *
 * `attempt NAME [NUMBER]`; linked statically and put into the sandbox by the tests.  Calls are made
 * by number, so that no library stands between the attempt and the kernel.  What could do harm if
 * it got through has arguments that the kernel refuses.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BIND	   ((void *)4096)
#define REBIND	   ((void *)(4096 | 32))
#define LAZY	   ((void *)2)
#define HERE	   ((void *)(long)AT_FDCWD)
#define N(value)   ((void *)(long)(value))
#define GIVEN	   ((void *)&number)
#define TIOCLINUX_ 0x541c

static long number; /* given besides the name */
static char zeros[4096];

/* ---- one call each ---- */

/* clang-format off */
static const struct {
	const char *name;
	long call;
	const void *args[6];
} calls[] = {
	{"mount_tmpfs", SYS_mount, {"x", "/mnt", "tmpfs"}},
	{"mount_proc", SYS_mount, {"x", "/mnt", "proc"}},
	{"mount_sysfs", SYS_mount, {"x", "/mnt", "sysfs"}},
	{"mount_cgroup", SYS_mount, {"x", "/mnt", "cgroup", NULL, "memory"}},
	{"mount_cgroup2", SYS_mount, {"x", "/mnt", "cgroup2"}},
	{"mount_devpts", SYS_mount, {"x", "/mnt", "devpts"}},
	{"mount_overlay", SYS_mount, {"x", "/mnt", "overlay", NULL, "lowerdir=/:/usr"}},
	{"mount_bind", SYS_mount, {"/", "/mnt", NULL, BIND}},
	{"remount_sys", SYS_mount, {"x", "/sys", NULL, REBIND}},
	{"remount_proc_sys", SYS_mount, {"x", "/proc/sys", NULL, REBIND}},
	{"remount_root", SYS_mount, {"x", "/", NULL, REBIND}},
	{"remount_volume", SYS_mount, {"x", "/data", NULL, REBIND}},
	{"umount_volume", SYS_umount2, {"/data", LAZY}},
	{"move_volume", SYS_move_mount, {HERE, "/data", HERE, "/mnt"}},
	{"copy_volume", SYS_open_tree, {HERE, "/data", N(1 | O_CLOEXEC)}},
	{"mknod_volume", SYS_mknodat, {HERE, "/vol/node", N(S_IFCHR | 0600), GIVEN}},
	{"umount_mask", SYS_umount2, {"/proc/keys", LAZY}},
	{"umount_sys", SYS_umount2, {"/sys", LAZY}},
	{"umount_dev", SYS_umount2, {"/dev", LAZY}},
	{"umount_root", SYS_umount2, {"/", LAZY}},
	{"pivot_root", SYS_pivot_root, {".", "."}},
	{"open_tree", SYS_open_tree, {HERE, "/proc", N(1 | O_CLOEXEC)}},
	{"move_mount", SYS_move_mount, {HERE, "/dev", HERE, "/mnt"}},
	{"fsopen", SYS_fsopen, {"proc"}},
	{"fspick", SYS_fspick, {HERE, "/sys"}},
	{"unshare", SYS_unshare, {GIVEN}},
	{"trusted_xattr", SYS_setxattr, {"/tmp", "trusted.overlay.opaque", "y", N(1)}},
	{"security_xattr", SYS_setxattr, {"/tmp", "security.ima", "y", N(1)}},
	{"mknod_block", SYS_mknodat, {HERE, "/tmp/node", N(S_IFBLK | 0600), GIVEN}},
	{"mknod_char", SYS_mknodat, {HERE, "/tmp/node", N(S_IFCHR | 0600), GIVEN}},
	{"ptrace_attach", SYS_ptrace, {N(PTRACE_ATTACH), GIVEN}},
	{"ptrace_seize", SYS_ptrace, {N(PTRACE_SEIZE), GIVEN}},
	{"kcmp", SYS_kcmp, {GIVEN, N(2)}},
	{"kill", SYS_kill, {GIVEN, N(SIGKILL)}},
	{"bpf_map", SYS_bpf, {N(0), zeros, N(64)}},
	{"bpf_prog", SYS_bpf, {N(5), zeros, N(64)}},
	{"perf", SYS_perf_event_open, {zeros, N(0), N(-1), N(-1)}},
	{"userfaultfd", SYS_userfaultfd, {N(1 | O_CLOEXEC)}},
	{"io_uring", SYS_io_uring_setup, {N(4), zeros}},
	{"io_uring_enter", SYS_io_uring_enter, {N(-1)}},
	{"io_uring_register", SYS_io_uring_register, {N(-1)}},
	{"aio", SYS_io_setup, {N(1), zeros}},
	{"kexec", SYS_kexec_load, {N(0)}},
	{"kexec_file", SYS_kexec_file_load, {N(-1), N(-1)}},
	{"init_module", SYS_init_module, {zeros, N(64), ""}},
	{"finit_module", SYS_finit_module, {N(-1), ""}},
	{"delete_module", SYS_delete_module, {"no such module", N(O_NONBLOCK)}},
	{"reboot", SYS_reboot, {N(0xfee1dead), N(672274793), N(0x1234567)}},
	{"settimeofday", SYS_settimeofday, {NULL, zeros}},
	{"clock_settime", SYS_clock_settime, {N(CLOCK_MONOTONIC), zeros}},
	{"swapon", SYS_swapon, {"/nowhere"}},
	{"swapoff", SYS_swapoff, {"/nowhere"}},
	{"acct", SYS_acct, {"/nowhere"}},
	{"quotactl", SYS_quotactl, {N(0x80000100)}},
	{"syslog", SYS_syslog, {N(3), zeros, N(sizeof(zeros))}},
	{"vhangup", SYS_vhangup, {NULL}},
	{"sethostname", SYS_sethostname, {"escaped", N(7)}},
	{"setdomainname", SYS_setdomainname, {"escaped", N(7)}},
	{"add_key", SYS_add_key, {"user", "escape", "x", N(1), N(-3)}},
	{"keyctl", SYS_keyctl, {N(0), N(-3), N(1)}},
	{"request_key", SYS_request_key, {"user", "escape", NULL, N(-3)}},
	{"personality", SYS_personality, {N(0x0040000)}},
	{"fanotify", SYS_fanotify_init, {N(0)}},
	{"mbind", SYS_mbind, {N(0)}},
	{"move_pages", SYS_move_pages, {N(1)}},
	{"setns", SYS_setns, {N(-1)}},
	{"open_by_handle", SYS_open_by_handle_at, {HERE, zeros}},
	{"name_to_handle", SYS_name_to_handle_at, {HERE, "/", zeros, zeros}},
	{"priority", SYS_setpriority, {N(PRIO_PROCESS), N(0), N(-5)}},
	{"ambient", SYS_prctl, {N(PR_CAP_AMBIENT), N(PR_CAP_AMBIENT_RAISE), N(CAP_SYS_ADMIN)}},
	{"allow_new_privs", SYS_prctl, {N(PR_SET_NO_NEW_PRIVS), N(0)}},
	{"unknown_call", 1000, {NULL}},
#ifdef __x86_64__
	{"iopl", SYS_iopl, {N(3)}},
	{"ioperm", SYS_ioperm, {N(0x80), N(1), N(1)}},
	{"modify_ldt", SYS_modify_ldt, {N(0), zeros, N(16)}},
	{"x32_call", 0x40000000 | SYS_getpid, {NULL}},
#endif
};
/* clang-format on */

/* ---- those that need more ---- */

static long mount_setattr_(void)
{
	struct mount_attr a = {.attr_clr = MOUNT_ATTR_RDONLY};

	return syscall(SYS_mount_setattr, AT_FDCWD, "/sys", 0, &a, sizeof(a));
}

static long clone_(void)
{
	long pid = syscall(SYS_clone, number | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	return pid;
}

static long clone3_(void)
{
	struct clone_args a = {.flags = (uint64_t)number, .exit_signal = SIGCHLD};
	long pid = syscall(SYS_clone3, &a, sizeof(a));

	if (pid == 0)
		_exit(0);
	return pid;
}

static long setns_pidfd(void)
{
	return syscall(SYS_setns, syscall(SYS_pidfd_open, 1, 0), CLONE_NEWNS);
}

/* The old way out of a chroot: a directory outside of the new root, then up and up. */
static long leave_chroot(void)
{
	struct stat before, after;

	if (stat("/", &before) < 0 || (mkdir("/tmp/jail", 0700) < 0 && errno != EEXIST))
		return -1;
	if (syscall(SYS_chroot, "/tmp/jail") < 0)
		return -1;
	for (int i = 0; i < 100; i++)
		if (chdir("..") < 0)
			return -1;
	if (syscall(SYS_chroot, ".") < 0 || stat("/", &after) < 0)
		return -1;
	errno = EXDEV; /* only out of the one it made itself */
	return before.st_dev == after.st_dev && before.st_ino == after.st_ino ? -1 : 0;
}

static long immutable(void)
{
	int fd = open("/tmp/immutable", O_CREAT | O_RDWR, 0600), flags = FS_IMMUTABLE_FL;

	return ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

/* Tracing one's own is allowed. */
static long ptrace_child(void)
{
	pid_t pid = fork();
	long r;

	if (pid == 0)
		for (;;)
			pause();
	r = syscall(SYS_ptrace, PTRACE_ATTACH, pid, 0, 0);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, __WALL);
	return r;
}

static long copy_memory(long call)
{
	/* Where static programs begin; the right to it is checked first. */
	struct iovec ours = {zeros, 16}, theirs = {(void *)0x400000, 16};

	return syscall(call, number, &ours, 1, &theirs, 1, 0);
}

static long read_memory(void)
{
	return copy_memory(SYS_process_vm_readv);
}

static long write_memory(void)
{
	return copy_memory(SYS_process_vm_writev);
}

static long take_fd(void)
{
	return syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, number, 0), 3, 0);
}

static long adjtimex_(void)
{
	struct timex t = {.modes = ADJ_TICK, .tick = 10000}; /* what it is anyway */

	return syscall(SYS_adjtimex, &t);
}

static long clock_adjtime_(void)
{
	struct timex t = {.modes = ADJ_TICK, .tick = 10000};

	return syscall(SYS_clock_adjtime, CLOCK_REALTIME, &t);
}

static long on_terminal(unsigned long request)
{
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY), unlock = 0, terminal;

	(void)ioctl(master, TIOCSPTLCK, &unlock);
	terminal = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
	if (terminal < 0)
		exit(2);
	return syscall(SYS_ioctl, terminal, request, "x");
}

static long tiocsti(void)
{
	return on_terminal(TIOCSTI);
}

/* The kernel looks at 32 bits of the number only. */
static long tiocsti_high(void)
{
	return on_terminal(TIOCSTI | 1ul << 32);
}

static long tioclinux(void)
{
	return on_terminal(TIOCLINUX_);
}

static long realtime(void)
{
	struct sched_param p = {.sched_priority = 1};

	return syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &p);
}

static long raise_limit(void)
{
	struct rlimit l = {RLIM_INFINITY, RLIM_INFINITY};

	return syscall(SYS_prlimit64, 0, number, &l, NULL);
}

static long capset_(void)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct all[2] = {{~0u, ~0u, ~0u}, {~0u, ~0u, ~0u}};

	return syscall(SYS_capset, &head, all);
}

/* Of another architecture, where the filter's numbers mean other calls. */
static long i386_call(void)
{
	long r = 20;

#ifdef __x86_64__
	__asm__ volatile("int $0x80" : "+a"(r)::"memory");
#endif
	return r;
}

/* Queues signals to itself until the kernel takes no more, says how many, and holds them. */
static long queue_signals(void)
{
	union sigval value = {0};
	sigset_t set;
	long n = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	while (n < 4000000 && sigqueue(getpid(), SIGRTMIN, value) == 0)
		n++;
	printf("%ld\n", n);
	fflush(stdout);
	for (;;)
		pause();
	return 0;
}

/* The number: family << 16 | type << 8 | protocol. */
static long socket_(void)
{
	return syscall(SYS_socket, number >> 16, number >> 8 & 0xff, number & 0xff);
}

static long option(int level, int name, int value)
{
	int s = socket(AF_INET, SOCK_STREAM, 0);

	return setsockopt(s, level, name, &value, sizeof(value));
}

static long so_mark(void)
{
	return option(SOL_SOCKET, SO_MARK, 1);
}

static long so_priority(void)
{
	return option(SOL_SOCKET, SO_PRIORITY, 7);
}

static long so_rcvbufforce(void)
{
	return option(SOL_SOCKET, SO_RCVBUFFORCE, 1 << 30);
}

static long ip_transparent(void)
{
	return option(0, 19, 1);
}

static long tcp_ulp(void)
{
	return option(6, 31, 0x736c74);
}

/* The number: which option.  One instruction: take all of the packet. */
static long attach(void)
{
	struct {
		uint16_t code;
		uint8_t jt, jf;
		uint32_t k;
	} take = {6, 0, 0, 0xffff};
	struct {
		uint16_t len;
		void *code;
	} program = {1, &take};
	int s = socket(AF_INET, SOCK_DGRAM, 0);

	return setsockopt(s, SOL_SOCKET, (int)number, &program, sizeof(program));
}

static const struct {
	const char *name;
	long (*run)(void);
} functions[] = {
	{"mount_setattr", mount_setattr_},
	{"clone", clone_},
	{"clone3", clone3_},
	{"setns_pidfd", setns_pidfd},
	{"leave_chroot", leave_chroot},
	{"immutable", immutable},
	{"ptrace_child", ptrace_child},
	{"read_memory", read_memory},
	{"write_memory", write_memory},
	{"take_fd", take_fd},
	{"adjtimex", adjtimex_},
	{"clock_adjtime", clock_adjtime_},
	{"tiocsti", tiocsti},
	{"tiocsti_high", tiocsti_high},
	{"tioclinux", tioclinux},
	{"realtime", realtime},
	{"raise_limit", raise_limit},
	{"capset", capset_},
	{"i386_call", i386_call},
	{"queue_signals", queue_signals},
	{"socket", socket_},
	{"so_mark", so_mark},
	{"so_priority", so_priority},
	{"so_rcvbufforce", so_rcvbufforce},
	{"ip_transparent", ip_transparent},
	{"tcp_ulp", tcp_ulp},
	{"attach", attach},
};

static int tell(long result)
{
	const char *error = result >= 0 ? "ok" : strerrorname_np(errno);

	puts(error ? error : "an unknown error");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	number = argc > 2 ? strtol(argv[2], NULL, 0) : 0;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (strcmp(functions[i].name, argv[1]) == 0)
			return tell(functions[i].run());
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		long a[6];

		if (strcmp(calls[i].name, argv[1]) != 0)
			continue;
		for (int k = 0; k < 6; k++)
			a[k] = calls[i].args[k] == GIVEN ? number : (long)calls[i].args[k];
		return tell(syscall(calls[i].call, a[0], a[1], a[2], a[3], a[4], a[5]));
	}
	return 2;
}
