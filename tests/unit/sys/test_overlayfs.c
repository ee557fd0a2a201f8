/*
 * test_overlayfs.c - overlays of as many layers as a sandbox may have, in both ways.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "sys/overlayfs.h"

#define LAYERS 256

typedef int mount_fn(const struct overlayfs *o, int target_fd, struct err *e);

/* Layers of one file each, in a tmpfs that only this process sees. */
static int make_layers(char names[LAYERS][64], const char *format)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", "/tmp", "tmpfs", 0, NULL) < 0 || chdir("/tmp") < 0)
		return 77;
	for (int i = 0; i < LAYERS; i++) {
		char file[96];

		snprintf(names[i], sizeof(names[i]), format, i);
		snprintf(file, sizeof(file), "%s/%d", names[i], i);
		if (mkdir(names[i], 0755) < 0 || close(creat(file, 0644)) < 0)
			return 77;
	}
	return mkdir("upper", 0755) || mkdir("work", 0755) || mkdir("root", 0755) ? 77 : 0;
}

/* 0 = every layer's file is there; else the error. */
static int try_in_child(mount_fn *fn, const char *format)
{
	const char *lowers[LAYERS];
	struct overlayfs o = {
		.lowers = lowers, .lowers_n = LAYERS, .upper = "upper", .work = "work"};
	static char names[LAYERS][64];
	struct err e = ERR_NONE;
	int target, r = make_layers(names, format);

	for (int i = 0; i < LAYERS; i++)
		lowers[i] = names[i];
	target = open("root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (r == 0)
		r = -fn(&o, target, &e);
	for (int i = 0; r == 0 && i < LAYERS; i++) {
		char file[32];

		snprintf(file, sizeof(file), "root/%d", i);
		r = access(file, F_OK) < 0 ? errno : 0;
	}
	if (r == 0 && (close(creat("root/new", 0644)) < 0 || access("upper/new", F_OK) < 0))
		r = EIO;
	return r;
}

static int attempt(mount_fn *fn, const char *format)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(try_in_child(fn, format));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void needs_root(void)
{
	if (geteuid() != 0 || attempt(overlayfs_mount, "%d") == 77) {
		print_message("skipped: mounts need root\n");
		skip();
	}
}

static void mounts_layers_one_by_one(void **state)
{
	(void)state;
	needs_root();
	assert_int_equal(attempt(overlayfs_mount, "%d"), 0);
	/* Too long for one page of text. */
	assert_int_equal(attempt(overlayfs_mount, "a-directory-with-a-long-name-%d"), 0);
}

static void mounts_layers_by_text(void **state)
{
	(void)state;
	needs_root();
	assert_int_equal(attempt(overlayfs_mount_by_text, "%d"), 0);
	assert_int_equal(attempt(overlayfs_mount_by_text, "a-directory-with-a-long-name-%d"),
			 E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mounts_layers_one_by_one),
		cmocka_unit_test(mounts_layers_by_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
