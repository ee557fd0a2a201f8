/*
 * Trees: in order, to the asked depth, and deeper than fds or paths reach.
 */
#include "execd/file_walk.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "file_test.h"

static struct file_walk *walk_of(const struct file_test *t, unsigned depth, unsigned flags)
{
	struct file_walk *w = NULL;
	struct err e = ERR_NONE;

	assert_int_equal(file_walk_open(open(t->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), t->dir,
					depth, flags, &w, &e),
			 0);
	return w;
}

static int next(struct file_walk *w, struct file_walk_entry *ret)
{
	struct err e = ERR_NONE;
	int r;

	do
		r = file_walk_next(w, ret, &e);
	while (r == -EAGAIN);
	return r;
}

/* Everything that is told, as "name name> <name". */
static const char *told(const struct file_test *t, unsigned depth, unsigned flags)
{
	static char text[4096];
	struct buf out = BUF_INIT(sizeof(text) - 1);
	struct file_walk *w = walk_of(t, depth, flags);
	struct file_walk_entry entry;

	while (next(w, &entry) == 1) {
		static const char *const marks[][2] = {{"", " "}, {"", "> "}, {"<", " "}};
		struct view rest = view_skip(entry.path, strlen(t->dir) + 1);

		assert_int_equal(buf_append_str(&out, marks[entry.kind][0]), 0);
		assert_int_equal(buf_append_view(&out, rest), 0);
		assert_int_equal(buf_append_str(&out, marks[entry.kind][1]), 0);
		assert_true(view_ends(entry.path, view_of(entry.name)));
	}
	file_walk_close(w);
	strcpy(text, buf_str(&out));
	buf_done(&out);
	return text;
}

static void entries_come_in_order_down_to_a_depth(void **state)
{
	const struct file_test *t = *state;

	mkdir(file_test_path(t, "b"), 0755);
	mkdir(file_test_path(t, "b/d"), 0755);
	mkdir(file_test_path(t, "e"), 0755);
	file_test_write(t, "c", "");
	file_test_write(t, "a", "");
	file_test_write(t, "B", "");
	file_test_write(t, "b/z", "");
	file_test_write(t, "b/d/y", "");
	file_test_write(t, "b.txt", "");
	assert_int_equal(symlink("b", file_test_path(t, "link")), 0);

	assert_string_equal(told(t, 1, 0), "B a b> b.txt c e> link ");
	assert_string_equal(told(t, 2, 0), "B a b> b/d> b/z b.txt c e> link ");
	assert_string_equal(told(t, 9, 0), "B a b> b/d> b/d/y b/z b.txt c e> link ");
	assert_string_equal(told(t, 9, FILE_WALK_LEAVE),
			    "B a b> b/d> b/d/y <b/d b/z <b b.txt c e> <e link ");
}

static void many_entries_stay_in_order(void **state)
{
	const struct file_test *t = *state;
	struct file_walk_entry entry;
	struct file_walk *w;
	char last[64] = "";
	int n = 0;

	for (int i = 0; i < 3000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "%u", (unsigned)i * 2654435761u);
		fd_close(open(file_test_path(t, name), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	}
	w = walk_of(t, 1, 0);
	for (; next(w, &entry) == 1; n++) {
		assert_true(strcmp(last, entry.name) < 0);
		assert_true(entry.may_match);
		strcpy(last, entry.name);
	}
	assert_int_equal(n, 3000);
	file_walk_close(w);
}

/* Makes `levels` directories inside each other, "d" each. */
static void make_deep(const struct file_test *t, int levels)
{
	int fd = open(t->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < levels; i++) {
		int below;

		assert_int_equal(mkdirat(fd, "d", 0755), 0);
		below = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		fd_close(fd);
		fd = below;
		assert_true(fd >= 0);
	}
	fd_close(fd);
}

static void a_tree_deeper_than_a_path_is_walked_and_removed(void **state)
{
	const struct file_test *t = *state;
	struct file_walk_entry entry;
	struct file_walk *w;
	int n = 0;

	make_deep(t, 3000);
	w = walk_of(t, UINT_MAX, 0);
	while (next(w, &entry) == 1)
		n++;
	assert_int_equal(n, 3000);
	file_walk_close(w);

	w = walk_of(t, UINT_MAX, FILE_WALK_LEAVE | FILE_WALK_REMOVING);
	while (next(w, &entry) == 1)
		if (entry.kind == FILE_WALK_DIR_END) {
			assert_int_equal(unlinkat(entry.dir_fd, entry.name, AT_REMOVEDIR), 0);
			n--;
		}
	assert_int_equal(n, 0);
	file_walk_close(w);
}

static void a_directory_of_several_batches_is_emptied(void **state)
{
	const struct file_test *t = *state;
	struct file_walk_entry entry;
	struct file_walk *w;
	char name[220];
	int n = 0;

	for (int i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "%0200d", i);
		fd_close(open(file_test_path(t, name), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	}
	w = walk_of(t, UINT_MAX, FILE_WALK_LEAVE | FILE_WALK_REMOVING);
	for (; next(w, &entry) == 1; n++)
		assert_int_equal(unlinkat(entry.dir_fd, entry.name, 0), 0);
	assert_int_equal(n, 5000);
	file_walk_close(w);
	assert_string_equal(told(t, 1, 0), "");
}

static void a_directory_that_moved_away_is_noticed(void **state)
{
	const struct file_test *t = *state;
	struct file_walk_entry entry;
	struct err e = ERR_NONE;
	struct file_walk *w;
	char from[PATH_MAX];
	size_t len;
	int r = 1;

	make_deep(t, 200);
	len = (size_t)snprintf(from, sizeof(from), "%s", t->dir);
	for (int i = 0; i < 100; i++, len += 2)
		memcpy(from + len, "/d", 3);
	w = walk_of(t, UINT_MAX, 0);
	for (int i = 0; i < 200; i++)
		assert_int_equal(next(w, &entry), 1);
	/* The lowest directories are open; one on the way up is moved elsewhere. */
	assert_int_equal(rename(from, file_test_path(t, "moved")), 0);
	while (r == 1 || r == -EAGAIN)
		r = file_walk_next(w, &entry, &e);
	assert_int_equal(r, -ESTALE);
	assert_non_null(strstr(e.msg, "moved"));
	file_walk_close(w);
}

static void a_walk_that_is_given_up_leaves_no_fd(void **state)
{
	const struct file_test *t = *state;
	struct file_walk_entry entry;
	struct file_walk *w;
	int before, after;

	make_deep(t, 30);
	before = open("/dev/null", O_RDONLY | O_CLOEXEC);
	w = walk_of(t, UINT_MAX, 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(next(w, &entry), 1);
	file_walk_close(w);
	file_walk_close(NULL);
	after = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(after, before + 1);
	fd_close(before);
	fd_close(after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		file_test(entries_come_in_order_down_to_a_depth),
		file_test(many_entries_stay_in_order),
		file_test(a_tree_deeper_than_a_path_is_walked_and_removed),
		file_test(a_directory_of_several_batches_is_emptied),
		file_test(a_directory_that_moved_away_is_noticed),
		file_test(a_walk_that_is_given_up_leaves_no_fd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
