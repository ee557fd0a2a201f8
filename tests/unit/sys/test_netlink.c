/*
 * Links, addresses and routes, in a network namespace of the test's own.
 */
#include "sys/netlink.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/fd.h"

static int netlink_fd = -1, netns_fd = -1;

static int enter(void **state)
{
	struct err e = ERR_NONE;

	if (unshare(CLONE_NEWNET) < 0)
		return 0; /* every test skips */
	netns_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	return netlink_open(&netlink_fd, &e);
}

static int leave(void **state)
{
	netlink_fd = fd_close(netlink_fd);
	netns_fd = fd_close(netns_fd);
	return 0;
}

struct seen {
	unsigned n;
	int index;
	const char *wanted;
};

static void see(void *arg, int index, const char *name)
{
	struct seen *s = arg;

	s->n++;
	if (strcmp(name, s->wanted) == 0)
		s->index = index;
}

static struct seen look_for(const char *name)
{
	struct seen s = {.wanted = name};
	struct err e = ERR_NONE;

	assert_int_equal(netlink_each_link(netlink_fd, see, &s, &e), 0);
	return s;
}

static void a_pair_comes_with_its_address_and_routes(void **state)
{
	struct netlink_veth v = {
		.name = "in",
		.index = 64,
		.peer = "out",
		.peer_netns_fd = netns_fd,
		.mtu = 1400,
	};
	struct err e = ERR_NONE;
	struct netlink_batch b;

	if (netlink_fd < 0)
		skip();
	netlink_batch_init(&b);
	netlink_add_veth(&b, &v);
	netlink_add_address(&b, 64, 0x0a580005);
	netlink_add_route(&b, 64, 0, 0, 0x0a580001);
	if (netlink_run(netlink_fd, &b, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(look_for("in").index, 64);
	assert_int_equal(if_nametoindex("in"), 64);

	netlink_batch_init(&b);
	netlink_check_sources(&b, look_for("out").index);
	if (access("/proc/sys/net/ipv6", F_OK) == 0)
		netlink_no_ipv6(&b, look_for("out").index);
	netlink_set_up(&b, look_for("out").index);
	netlink_add_route(&b, look_for("out").index, 0x0a580005, 32, 0);
	if (netlink_run(netlink_fd, &b, &e) < 0)
		fail_msg("%s", e.msg);
}

static void a_name_that_exists_is_told(void **state)
{
	struct netlink_veth v = {
		.name = "in2",
		.index = 65,
		.peer = "out",
		.peer_netns_fd = netns_fd,
		.mtu = 1400,
	};
	struct err e = ERR_NONE;
	struct netlink_batch b;

	if (netlink_fd < 0)
		skip();
	netlink_batch_init(&b);
	netlink_add_veth(&b, &v);
	netlink_add_address(&b, 65, 0x0a580006);
	assert_int_equal(netlink_run(netlink_fd, &b, &e), -EEXIST);
	assert_non_null(strstr(e.msg, "make a veth pair"));
	assert_int_equal(look_for("in2").index, 0);
}

static void a_link_can_be_deleted_once(void **state)
{
	struct err e = ERR_NONE;
	struct netlink_batch b;

	if (netlink_fd < 0)
		skip();
	netlink_batch_init(&b);
	netlink_delete_link(&b, 64);
	assert_int_equal(netlink_run(netlink_fd, &b, &e), 0);
	assert_int_equal(look_for("out").index, 0);
	assert_int_equal(netlink_run(netlink_fd, &b, &e), -ENODEV);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pair_comes_with_its_address_and_routes),
		cmocka_unit_test(a_name_that_exists_is_told),
		cmocka_unit_test(a_link_can_be_deleted_once),
	};

	return cmocka_run_group_tests(tests, enter, leave);
}
