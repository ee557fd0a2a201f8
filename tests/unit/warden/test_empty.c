/*
 * Emptying the trash: whatever was in it, and nothing else.
 */
#include "warden/empty.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define DEEP 3000

struct place {
	char path[64];
	int top, trash, outside;
};

static int begin(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	snprintf(p->path, sizeof(p->path), "/tmp/osb-empty.XXXXXX");
	assert_non_null(mkdtemp(p->path));
	p->top = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(p->top, "trash", 0700), 0);
	assert_int_equal(mkdirat(p->top, "outside", 0700), 0);
	p->trash = openat(p->top, "trash", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	p->outside = openat(p->top, "outside", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(p->trash >= 0 && p->outside >= 0);
	*state = p;
	return 0;
}

static int end(void **state)
{
	struct place *p = *state;

	while (empty_pass(p->trash, UINT64_MAX) > 0 || empty_pass(p->outside, UINT64_MAX) > 0)
		;
	unlinkat(p->top, "trash", AT_REMOVEDIR);
	unlinkat(p->top, "outside", AT_REMOVEDIR);
	rmdir(p->path);
	close(p->trash);
	close(p->outside);
	close(p->top);
	free(p);
	return 0;
}

static void make_file(int dir, const char *name)
{
	int fd = openat(dir, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static void empty_all(struct place *p)
{
	int r = 1;

	for (int i = 0; r == 1 && i < DEEP; i++)
		r = empty_pass(p->trash, UINT64_MAX);
	assert_int_equal(r, 0);
	assert_int_equal(unlinkat(p->top, "trash", AT_REMOVEDIR), 0);
	assert_int_equal(mkdirat(p->top, "trash", 0700), 0);
	close(p->trash);
	p->trash = openat(p->top, "trash", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void files_links_and_trees_go(void **state)
{
	struct place *p = *state;

	make_file(p->trash, "file");
	assert_int_equal(symlinkat("nowhere", p->trash, "dangling"), 0);
	assert_int_equal(mkfifoat(p->trash, "pipe", 0), 0);
	assert_int_equal(mkdirat(p->trash, "a", 0755), 0);
	assert_int_equal(mkdirat(p->trash, "a/b", 0755), 0);
	make_file(p->trash, "a/b/-rf *\n");
	assert_int_equal(mkdirat(p->trash, "a/empty", 0755), 0);
	/* Nothing is left after one pass, and the next one says so. */
	assert_int_equal(empty_pass(p->trash, UINT64_MAX), 0);
	empty_all(p);
}

static void links_are_not_followed(void **state)
{
	struct place *p = *state;

	make_file(p->outside, "kept");
	assert_int_equal(mkdirat(p->trash, "a", 0755), 0);
	assert_int_equal(symlinkat("../outside", p->trash, "out"), 0);
	assert_int_equal(symlinkat("../../outside", p->trash, "a/out"), 0);
	empty_all(p);
	assert_int_equal(faccessat(p->outside, "kept", F_OK, 0), 0);
}

static void depth_has_no_bound(void **state)
{
	struct place *p = *state;
	int at = dup(p->trash);

	for (int i = 0; i < DEEP; i++) {
		int next;

		assert_int_equal(mkdirat(at, "d", 0755), 0);
		make_file(at, "f");
		next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(at);
		at = next;
	}
	close(at);
	empty_all(p);
}

static void time_is_kept(void **state)
{
	struct place *p = *state;

	make_file(p->trash, "file");
	assert_int_equal(empty_pass(p->trash, 0), 1);
	assert_int_equal(faccessat(p->trash, "file", F_OK, 0), 0);
	empty_all(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(files_links_and_trees_go, begin, end),
		cmocka_unit_test_setup_teardown(links_are_not_followed, begin, end),
		cmocka_unit_test_setup_teardown(depth_has_no_bound, begin, end),
		cmocka_unit_test_setup_teardown(time_is_kept, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
