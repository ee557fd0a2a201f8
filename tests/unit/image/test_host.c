/*
 * The host image: built once, kept while nothing changes, exchanged when something does.
 */
#include "image/host.h"

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "codec/resolv.h"

static const struct resolv_conf dns = {.servers = {0xc0000235}, .n = 1};

static int make_dir(void **state)
{
	const char *tmp = getenv("TMPDIR");
	char *dir = malloc(PATH_MAX);

	snprintf(dir, PATH_MAX, "%s/osb-image.XXXXXX", tmp ? tmp : "/tmp");
	*state = dir;
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char command[PATH_MAX + 16];

	snprintf(command, sizeof(command), "rm -rf '%s'", (char *)*state);
	free(*state);
	return system(command);
}

static bool is_root(void)
{
	return geteuid() == 0;
}

static void refresh(const char *dir, const struct resolv_conf *servers)
{
	struct err e = ERR_NONE;

	if (host_image_refresh(dir, servers, &e) < 0)
		fail_msg("%s", e.msg);
}

static struct stat status(const char *dir, const char *path)
{
	char whole[PATH_MAX];
	struct stat st;

	snprintf(whole, sizeof(whole), "%s/%s", dir, path);
	assert_int_equal(lstat(whole, &st), 0);
	return st;
}

static void text_of(const char *dir, const char *path, char ret[4096])
{
	char whole[PATH_MAX];
	ssize_t n;
	int fd;

	snprintf(whole, sizeof(whole), "%s/rootfs/%s", dir, path);
	fd = open(whole, O_RDONLY);
	assert_true(fd >= 0);
	n = read(fd, ret, 4095);
	assert_true(n >= 0);
	ret[n] = '\0';
	close(fd);
}

static void the_tree_has_what_programs_expect(void **state)
{
	static const struct {
		const char *path;
		mode_t mode;
	} cases[] = {
		{"rootfs/usr", S_IFDIR | 0755},
		{"rootfs/proc", S_IFDIR | 0555},
		{"rootfs/tmp", S_IFDIR | 01777},
		{"rootfs/var/tmp", S_IFDIR | 01777},
		{"rootfs/root", S_IFDIR | 0700},
		{"rootfs/etc/passwd", S_IFREG | 0644},
		{"rootfs/etc/ssl/certs", S_IFDIR | 0755},
		{"rootfs/opt/code-interpreter/code-interpreter.sh", S_IFREG | 0755},
	};
	char text[4096];

	if (!is_root())
		skip();
	refresh(*state, &dns);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct stat st = status(*state, cases[i].path);

		assert_int_equal(st.st_mode, cases[i].mode);
		assert_int_equal(st.st_uid, 0);
	}
	assert_true(S_ISLNK(status(*state, "rootfs/bin").st_mode));
	assert_int_equal(status(*state, "rootfs/home/sandbox").st_uid, 1000);
	text_of(*state, "etc/resolv.conf", text);
	assert_string_equal(text, "nameserver 192.0.2.53\n");
	text_of(*state, "etc/passwd", text);
	assert_non_null(strstr(text, "root:x:0:0:"));
	assert_non_null(strstr(text, "nobody:x:65534:65534:"));
	text_of(*state, "etc/group", text);
	assert_non_null(strstr(text, "nogroup:x:65534:"));
}

static void nothing_else_of_the_host_is_there(void **state)
{
	static const char *const cases[] = {
		"etc/shadow",	   "etc/ssh",	  "etc/machine-id", "etc/fstab",
		"etc/ssl/private", "etc/sudoers", "boot",	    "root/.ssh",
	};
	char whole[PATH_MAX];

	if (!is_root())
		skip();
	refresh(*state, &dns);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		snprintf(whole, sizeof(whole), "%s/rootfs/%s", (char *)*state, cases[i]);
		assert_int_not_equal(access(whole, F_OK), 0);
	}
}

static void an_unchanged_host_keeps_its_tree(void **state)
{
	ino_t before;

	if (!is_root())
		skip();
	refresh(*state, &dns);
	before = status(*state, "rootfs").st_ino;
	refresh(*state, &dns);
	assert_int_equal(status(*state, "rootfs").st_ino, before);
}

static void a_change_makes_a_new_tree_and_keeps_the_old_one(void **state)
{
	struct resolv_conf other = {.servers = {0xc0000236}, .n = 1};
	char whole[PATH_MAX], text[4096];
	ino_t before;
	int old;

	if (!is_root())
		skip();
	refresh(*state, &dns);
	before = status(*state, "rootfs").st_ino;
	snprintf(whole, sizeof(whole), "%s/rootfs", (char *)*state);
	old = open(whole, O_RDONLY | O_DIRECTORY);
	refresh(*state, &other);
	assert_int_not_equal(status(*state, "rootfs").st_ino, before);
	text_of(*state, "etc/resolv.conf", text);
	assert_string_equal(text, "nameserver 192.0.2.54\n");
	assert_int_equal(faccessat(old, "etc/passwd", F_OK, 0), 0);
	host_image_prune(*state);
	assert_int_not_equal(faccessat(old, "etc/passwd", F_OK, 0), 0);
	close(old);
}

static void what_a_killed_warden_left_is_built_again(void **state)
{
	char whole[PATH_MAX];

	if (!is_root())
		skip();
	snprintf(whole, sizeof(whole), "%s/rootfs.new", (char *)*state);
	assert_int_equal(mkdir(whole, 0755), 0);
	snprintf(whole, sizeof(whole), "%s/rootfs.new/etc", (char *)*state);
	assert_int_equal(mkdir(whole, 0755), 0);
	refresh(*state, &dns);
	assert_true(S_ISREG(status(*state, "rootfs/etc/passwd").st_mode));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, make_dir, remove_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_tree_has_what_programs_expect),
		TEST(nothing_else_of_the_host_is_there),
		TEST(an_unchanged_host_keeps_its_tree),
		TEST(a_change_makes_a_new_tree_and_keeps_the_old_one),
		TEST(what_a_killed_warden_left_is_built_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
