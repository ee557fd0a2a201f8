/*
 * test_confine.c - what a confined egress can no longer do.  Each attempt is a child's; they need
 * root.
 */
#include <stdarg.h>
#include <stddef.h>

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "egress/confine.h"
#include "egress/options.h"
#include "egress/settings.h"

#define NETFILTER_PROTOCOL 12

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static char dir[] = "/tmp/osb-confine.XXXXXX";

/* 0 = it was done, else errno. */
typedef int attempt_fn(void);

static int result(long r)
{
	return r < 0 ? errno : 0;
}

static int netlink_socket(void)
{
	return result(socket(AF_NETLINK, SOCK_RAW, NETFILTER_PROTOCOL));
}

static int route_socket(void)
{
	return result(socket(AF_NETLINK, SOCK_RAW, 0));
}

static int unix_socket(void)
{
	return result(socket(AF_UNIX, SOCK_STREAM, 0));
}

static int packet_socket(void)
{
	return result(socket(AF_PACKET, SOCK_RAW, 0));
}

static int tcp_socket(void)
{
	return result(socket(AF_INET, SOCK_STREAM, 0));
}

static int udp6_socket(void)
{
	return result(socket(AF_INET6, SOCK_DGRAM, 0));
}

/* What the kernel itself says to it does not count: it must not hear of it. */
static int iptables(void)
{
	char bytes[64] = {0};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	return setsockopt(fd, IPPROTO_IP, 64, bytes, sizeof(bytes)) < 0 && errno == EPERM ? EPERM
											  : 0;
}

static int ip6tables(void)
{
	char bytes[64] = {0};
	int fd = socket(AF_INET6, SOCK_STREAM, 0);

	return setsockopt(fd, IPPROTO_IPV6, 64, bytes, sizeof(bytes)) < 0 && errno == EPERM ? EPERM
											    : 0;
}

static int address_of_the_host(void)
{
	char bytes[64] = {0};

	return result(ioctl(socket(AF_INET, SOCK_DGRAM, 0), SIOCSIFADDR, bytes));
}

static int options(void)
{
	int on = 1, fd = socket(AF_INET6, SOCK_STREAM, 0);

	return result(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0 ||
				      setsockopt(fd, SOL_SOCKET, SO_MARK, &on, sizeof(on)) < 0 ||
				      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0
			      ? -1
			      : 0);
}

static int pair(void)
{
	int fds[2];

	return result(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
}

static int program(void)
{
	char *const argv[] = {(char[]){"true"}, NULL}, *const env[] = {NULL};

	return result(execve("/bin/true", argv, env));
}

static int new_process(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return result(pid);
}

static int another_namespace(void)
{
	return result(unshare(CLONE_NEWNET));
}

static int a_mount(void)
{
	return result(mount("none", "/tmp", "tmpfs", 0, NULL));
}

static int a_signal(void)
{
	return result(kill(getppid(), 0));
}

static int reading_proc(void)
{
	return result(open("/proc/1/environ", O_RDONLY));
}

static int reading_elsewhere(void)
{
	return result(open("/root", O_RDONLY | O_DIRECTORY));
}

static int writing_elsewhere(void)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/x", dir);
	return result(open(path, O_WRONLY | O_CREAT, 0600));
}

static int reading_resolv_conf(void)
{
	int fd = open("/etc/resolv.conf", O_RDONLY);

	return fd < 0 && errno != ENOENT ? errno : 0;
}

static int reading_lists(void)
{
	return result(open(dir, O_RDONLY | O_DIRECTORY));
}

static const struct {
	const char *name;
	attempt_fn *fn;
	bool works;
	bool in_sanitized; /* the leak check needs it */
} attempts[] = {
	{"netlink socket", netlink_socket, .works = false},
	{"route socket", route_socket, .works = false},
	{"unix socket", unix_socket, .works = false},
	{"packet socket", packet_socket, .works = false},
	{"tcp socket", tcp_socket, .works = true},
	{"udp6 socket", udp6_socket, .works = true},
	{"iptables", iptables, .works = false},
	{"ip6tables", ip6tables, .works = false},
	{"an address of the host", address_of_the_host, .works = false},
	{"options of sockets", options, .works = true},
	{"socket pair", pair, .works = true},
	{"program", program, .works = false},
	{"new process", new_process, .works = false, .in_sanitized = true},
	{"another namespace", another_namespace, .works = false},
	{"mount", a_mount, .works = false},
	{"signal to others", a_signal, .works = false},
	{"reading /proc", reading_proc, .works = false},
	{"reading elsewhere", reading_elsewhere, .works = false},
	{"writing elsewhere", writing_elsewhere, .works = false},
	{"reading resolv.conf", reading_resolv_conf, .works = true},
	{"reading lists", reading_lists, .works = true},
};

/* The attempt's errno, 0 if it was done, 255 if there was nothing to confine with. */
static int in_child(attempt_fn *fn)
{
	const struct options o = {
		.supervisor_fd = -1, .change_user = true, .uid = 65534, .gid = 65534};
	struct err e = ERR_NONE;
	struct settings s;
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		settings_init(&s);
		s.rules_dir = dir;
		if (confine(&o, &s, &e) < 0) {
			fprintf(stderr, "%s\n", e.msg);
			_exit(255);
		}
		_exit(fn());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void only_what_it_needs_is_left(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	for (size_t i = 0; i < ARRAY_LEN(attempts); i++) {
		int r = in_child(attempts[i].fn);

		if (attempts[i].in_sanitized && SANITIZED)
			continue;
		if ((r == 0) != attempts[i].works || r == 255)
			fail_msg("%s: %d", attempts[i].name, r);
	}
}

static int is_dumpable(void)
{
	return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1 ? 0 : 1;
}

static void nobody_can_trace_it(void **state)
{
	(void)state;
	if (geteuid() != 0 || SANITIZED)
		skip();
	/* prctl(2) itself is refused, too. */
	assert_int_not_equal(in_child(is_dumpable), 0);
}

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) && chmod(dir, 0755) == 0 ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_it_needs_is_left),
		cmocka_unit_test(nobody_can_trace_it),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
