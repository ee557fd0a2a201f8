/*
 * New content takes its place whole or not at all, and keeps what the old file had.
 */
#include "execd/file_new.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <dirent.h>

#include "base/err.h"
#include "codec/json.h"
#include "execd/app.h"
#include "execd/users.h"
#include "file_test.h"

static const struct file_meta no_meta = FILE_META_NONE;

static int commit(struct file_new *n, const struct file_meta *meta)
{
	struct err e = ERR_NONE;
	int r;

	do
		r = file_new_commit(n, meta, &e);
	while (r > 0);
	return r;
}

/* Entries of the test's directory. */
static int entries(const struct file_test *t)
{
	DIR *d = opendir(t->dir);
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static void put(const struct file_test *t, const char *name, const char *text)
{
	struct file_new n = FILE_NEW_NONE;
	struct err e = ERR_NONE;

	assert_int_equal(file_new_open(&n, &file_root_real, file_test_path(t, name), &no_meta, &e),
			 0);
	assert_int_equal(file_new_write(&n, view_of(text), &e), 0);
	assert_int_equal(commit(&n, &no_meta), 0);
	file_new_done(&n);
}

static void a_new_file_appears_when_it_is_complete(void **state)
{
	const struct file_test *t = *state;
	struct file_new n = FILE_NEW_NONE;
	struct err e = ERR_NONE;

	assert_int_equal(file_new_open(&n, &file_root_real, file_test_path(t, "f"), &no_meta, &e),
			 0);
	assert_int_equal(file_new_write(&n, VIEW("half"), &e), 0);
	assert_null(file_test_read(t, "f"));
	assert_int_equal(commit(&n, &no_meta), 0);
	file_new_done(&n);
	assert_string_equal(file_test_read(t, "f"), "half");
	assert_int_equal(entries(t), 1);
}

static void what_is_not_committed_leaves_nothing(void **state)
{
	const struct file_test *t = *state;
	struct file_new n = FILE_NEW_NONE;
	struct err e = ERR_NONE;

	file_test_write(t, "old", "old");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(file_new_open(&n, &file_root_real,
					       file_test_path(t, i ? "old" : "new"), &no_meta, &e),
				 0);
		assert_int_equal(file_new_write(&n, VIEW("half"), &e), 0);
		file_new_done(&n);
	}
	assert_int_equal(entries(t), 1);
	assert_string_equal(file_test_read(t, "old"), "old");
}

static void an_existing_file_keeps_its_mode_and_links(void **state)
{
	const struct file_test *t = *state;
	struct stat a, b;

	file_test_write(t, "f", "something longer");
	assert_int_equal(chmod(file_test_path(t, "f"), 0640), 0);
	put(t, "f", "new");
	assert_string_equal(file_test_read(t, "f"), "new");
	assert_int_equal(stat(file_test_path(t, "f"), &a), 0);
	assert_int_equal(a.st_mode & 07777, 0640);

	/* With a second name the file itself is written. */
	assert_int_equal(link(file_test_path(t, "f"), file_test_path(t, "g")), 0);
	put(t, "f", "n");
	assert_string_equal(file_test_read(t, "g"), "n");
	assert_int_equal(stat(file_test_path(t, "f"), &b), 0);
	assert_true(a.st_ino == b.st_ino);
	assert_int_equal(b.st_mode & 07777, 0640);
	assert_int_equal(entries(t), 2);
}

static void symlinks_are_written_through(void **state)
{
	const struct file_test *t = *state;
	struct stat st;

	mkdir(file_test_path(t, "d"), 0755);
	assert_int_equal(symlink("d/target", file_test_path(t, "link")), 0);
	put(t, "link", "one");
	assert_string_equal(file_test_read(t, "d/target"), "one");
	put(t, "link", "two");
	assert_string_equal(file_test_read(t, "d/target"), "two");
	assert_int_equal(lstat(file_test_path(t, "link"), &st), 0);
	assert_true(S_ISLNK(st.st_mode));
}

static void directories_and_fifos_are_not_written(void **state)
{
	const struct file_test *t = *state;
	struct file_new n = FILE_NEW_NONE;
	struct err e = ERR_NONE;

	assert_int_equal(mkfifo(file_test_path(t, "fifo"), 0600), 0);
	assert_int_equal(
		file_new_open(&n, &file_root_real, file_test_path(t, "fifo"), &no_meta, &e),
		-EOPNOTSUPP);
	file_new_done(&n);
	assert_int_equal(file_new_open(&n, &file_root_real, t->dir, &no_meta, &e), -EISDIR);
	file_new_done(&n);
}

static void a_spool_finds_its_target_later(void **state)
{
	const struct file_test *t = *state;
	struct app app = {.home = "/"};
	struct file_meta meta = {
		.has_mode = true, .mode = 0600, .uid = (uid_t)-1, .gid = (gid_t)-1};
	static const char *const names[] = {"new", "old", "linked"};
	struct err e = ERR_NONE;
	char tmpdir[PATH_MAX + 8];
	struct stat st;

	snprintf(tmpdir, sizeof(tmpdir), "TMPDIR=%s", t->dir);
	strv_add(&app.env, tmpdir);
	file_test_write(t, "old", "a long old content");
	file_test_write(t, "linked", "a long old content");
	assert_int_equal(link(file_test_path(t, "linked"), file_test_path(t, "other")), 0);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct file_new n = FILE_NEW_NONE;

		assert_int_equal(file_new_open_spool(&n, &app, &e), 0);
		assert_int_equal(file_new_write(&n, VIEW("spooled"), &e), 0);
		assert_int_equal(
			file_new_aim(&n, &file_root_real, file_test_path(t, names[i]), &meta, &e),
			0);
		assert_int_equal(commit(&n, &meta), 0);
		file_new_done(&n);
		assert_string_equal(file_test_read(t, names[i]), "spooled");
		assert_int_equal(stat(file_test_path(t, names[i]), &st), 0);
		assert_int_equal(st.st_mode & 0777, 0600);
	}
	assert_int_equal(entries(t), 4);
	strv_done(&app.env);
}

static void a_large_copy_is_made_in_parts(void **state)
{
	const struct file_test *t = *state;
	struct file_new n = FILE_NEW_NONE;
	size_t size = 7 << 20;
	char *bytes = calloc(1, size);
	struct err e = ERR_NONE;
	struct stat st;
	int r, parts = 0;

	file_test_write(t, "a", "x");
	assert_int_equal(link(file_test_path(t, "a"), file_test_path(t, "b")), 0);
	assert_int_equal(file_new_open(&n, &file_root_real, file_test_path(t, "a"), &no_meta, &e),
			 0);
	assert_int_equal(file_new_write(&n, view_mem(bytes, size), &e), 0);
	while ((r = file_new_commit(&n, &no_meta, &e)) > 0)
		parts++;
	assert_int_equal(r, 0);
	assert_true(parts > 2);
	assert_int_equal(stat(file_test_path(t, "b"), &st), 0);
	assert_int_equal(st.st_size, size);
	file_new_done(&n);
	free(bytes);
}

static void metadata_is_read_strictly(void **state)
{
	static const struct {
		const char *json;
		bool ok;
		unsigned mode; /* 0: left alone */
	} cases[] = {
		{"{}", true, 0},
		{"{\"mode\":0}", true, 0},
		{"{\"mode\":null,\"owner\":null,\"group\":null}", true, 0},
		{"{\"mode\":755}", true, 0755},
		{"{\"mode\":7}", true, 07},
		{"{\"mode\":4755}", true, 0755},
		{"{\"mode\":100644}", true, 0644},
		{"{\"mode\":789}", false, 0},
		{"{\"mode\":-1}", false, 0},
		{"{\"mode\":\"755\"}", false, 0},
		{"{\"mode\":99999999}", false, 0},
		{"{\"owner\":7}", false, 0},
		{"[]", false, 0},
		{"{\"owner\":\"no such user\"}", true, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		osb_cleanup(json_freep) struct json *v = NULL;
		struct users *users = NULL;
		struct err e = ERR_NONE;
		struct file_meta m;
		int r;

		assert_int_equal(json_parse(view_of(cases[i].json), 0, &v, &e), 0);
		r = file_meta_parse(v, &users, &m, &e);
		assert_int_equal(r, cases[i].ok ? 0 : -EINVAL);
		if (r == 0) {
			assert_int_equal(m.has_mode, cases[i].mode != 0);
			assert_int_equal(m.has_mode ? m.mode : 0, cases[i].mode);
			assert_true(m.uid == (uid_t)-1 && m.gid == (gid_t)-1);
		}
		users_free(users);
	}
}

static void metadata_is_applied_through_any_fd(void **state)
{
	static const int kinds[] = {O_PATH, O_RDONLY};
	const struct file_test *t = *state;
	struct err e = ERR_NONE;
	struct stat st;

	file_test_write(t, "f", "x");
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct file_meta m = {.has_mode = true,
				      .mode = i ? 0751 : 0600,
				      .uid = geteuid(),
				      .gid = getegid()};
		int fd = open(file_test_path(t, "f"), kinds[i] | O_CLOEXEC);

		assert_int_equal(file_meta_apply(&m, fd, "f", &e), 0);
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_mode & 0777, m.mode);
		fd_close(fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		file_test(a_new_file_appears_when_it_is_complete),
		file_test(what_is_not_committed_leaves_nothing),
		file_test(an_existing_file_keeps_its_mode_and_links),
		file_test(symlinks_are_written_through),
		file_test(directories_and_fifos_are_not_written),
		file_test(a_spool_finds_its_target_later),
		file_test(a_large_copy_is_made_in_parts),
		cmocka_unit_test(metadata_is_read_strictly),
		file_test(metadata_is_applied_through_any_fd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
