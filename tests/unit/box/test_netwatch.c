/*
 * The sockets of a policed network and its table, in a network namespace of the test's own.
 */
#include "box/netwatch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/fd.h"
#include "sys/namespace.h"

#define DNS  15353
#define HTTP 18081

static bool inside;

static int enter(void **state)
{
	struct err e = ERR_NONE;

	inside = unshare(CLONE_NEWNET) == 0 && namespace_raise_loopback(&e) == 0;
	if (!inside)
		puts("skipped: no right to a network namespace");
	return 0;
}

static uint16_t port_of(int fd)
{
	struct sockaddr_in a;
	socklen_t len = sizeof(a);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	assert_int_equal(ntohl(a.sin_addr.s_addr), INADDR_LOOPBACK);
	return ntohs(a.sin_port);
}

static void open_on(struct netwatch *w, uint16_t dns, uint16_t http)
{
	struct err e = ERR_NONE;

	netwatch_init(w);
	w->dns_port = dns;
	w->http_port = http;
	if (netwatch_open(w, &e) < 0)
		fail_msg("%s", e.msg);
	for (size_t i = 0; i < WARDEN_NETWATCH_FDS; i++)
		assert_true(w->fds[i] >= 0 && fcntl(w->fds[i], F_GETFL) & O_NONBLOCK &&
			    fcntl(w->fds[i], F_GETFD) & FD_CLOEXEC);
	assert_int_equal(port_of(w->fds[WARDEN_NETWATCH_DNS_UDP]), w->dns_port);
	assert_int_equal(port_of(w->fds[WARDEN_NETWATCH_DNS_TCP]), w->dns_port);
	assert_int_equal(port_of(w->fds[WARDEN_NETWATCH_HTTP]), w->http_port);
}

static int take(int type, uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void it_has_the_ports_it_wants(void **state)
{
	struct netwatch w;

	if (!inside)
		skip();
	open_on(&w, DNS, HTTP);
	assert_int_equal(w.dns_port, DNS);
	assert_int_equal(w.http_port, HTTP);
	netwatch_close(&w);
	for (size_t i = 0; i < WARDEN_NETWATCH_FDS; i++)
		assert_int_equal(w.fds[i], -1);
	assert_int_equal(w.dns_port, DNS);
}

static void a_successor_shares_them(void **state)
{
	struct netwatch first, second;

	if (!inside)
		skip();
	open_on(&first, DNS, HTTP);
	open_on(&second, DNS, HTTP);
	assert_int_equal(second.dns_port, DNS);
	assert_int_equal(second.http_port, HTTP);
	netwatch_close(&first);
	netwatch_close(&second);
}

static void taken_ports_are_passed_over(void **state)
{
	static const int types[] = {SOCK_DGRAM, SOCK_STREAM};
	struct netwatch w;

	if (!inside)
		skip();
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		osb_cleanup(fd_closep) osb_unused int dns = take(types[i], DNS);

		open_on(&w, DNS, HTTP);
		assert_int_not_equal(w.dns_port, DNS);
		assert_int_equal(w.http_port, HTTP);
		netwatch_close(&w);
	}
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		osb_cleanup(fd_closep) osb_unused int http = take(types[i], HTTP);

		open_on(&w, DNS, HTTP);
		assert_int_equal(w.dns_port, DNS);
		assert_int_equal(w.http_port == HTTP, types[i] == SOCK_DGRAM);
		netwatch_close(&w);
	}
}

static void what_nft_does_not_take_is_said(void **state)
{
	struct err e = ERR_NONE;
	int r;

	if (!inside)
		skip();
	r = netwatch_load(VIEW("table inet t { chain c { nonsense; }; }\n"), &e);
	if (r == -ENOENT) {
		puts("skipped: there is no nft");
		skip();
	}
	assert_int_equal(r, -EPERM);
	assert_non_null(strstr(e.msg, "nft refuses the table"));
	assert_null(strchr(e.msg, '\n'));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_has_the_ports_it_wants),
		cmocka_unit_test(a_successor_shares_them),
		cmocka_unit_test(taken_ports_are_passed_over),
		cmocka_unit_test(what_nft_does_not_take_is_said),
	};

	return cmocka_run_group_tests(tests, enter, NULL);
}
