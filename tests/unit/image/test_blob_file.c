/*
 * test_blob_file.c - blobs that grow as parts, are locked, and are believed by their digest alone.
 */
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
#include "base/fd.h"
#include "image/blob_file.h"

/* printf 'hello world' | sha256sum */
#define HEX    "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9"
#define DIGEST "sha256:" HEX
#define TEXT   VIEW("hello world")

static char dir[PATH_MAX];
static int dir_fd = -1;

static int make_dir(void **state)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%s/osb-blobs.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(dir))
		return -1;
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir_fd < 0 ? -1 : 0;
}

static int remove_dir(void **state)
{
	(void)unlinkat(dir_fd, HEX, 0);
	(void)unlinkat(dir_fd, HEX ".part", 0);
	dir_fd = fd_close(dir_fd);
	return rmdir(dir);
}

static void put(const char *name, struct view text)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text.p, text.len), text.len);
	fd_close(fd);
}

static bool exists(const char *name)
{
	return faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int open_blob(struct blob_file *b, struct err *e)
{
	blob_file_init(b, dir_fd, DIGEST, TEXT.len);
	return blob_file_open(b, e);
}

static void becomes_a_blob_when_it_is_right(void **state)
{
	struct err e = ERR_NONE;
	struct blob_file b;

	assert_int_equal(open_blob(&b, &e), 0);
	assert_int_equal(b.have, 0);
	assert_int_equal(blob_file_add(&b, VIEW("hello "), &e), 0);
	assert_true(exists(HEX ".part"));
	assert_int_equal(blob_file_add(&b, VIEW("world"), &e), 0);
	assert_int_equal(blob_file_finish(&b, &e), 0);
	assert_true(exists(HEX));
	assert_false(exists(HEX ".part"));
	assert_int_equal(open_blob(&b, &e), 1);
}

static void goes_on_behind_what_is_there(void **state)
{
	struct err e = ERR_NONE;
	struct blob_file b;

	put(HEX ".part", VIEW("hello "));
	assert_int_equal(open_blob(&b, &e), 0);
	assert_int_equal(b.have, 6);
	assert_int_equal(blob_file_add(&b, VIEW("world"), &e), 0);
	assert_int_equal(blob_file_finish(&b, &e), 0);
	assert_true(exists(HEX));
}

static void begins_again_with_what_is_too_long(void **state)
{
	struct err e = ERR_NONE;
	struct blob_file b;

	put(HEX ".part", VIEW("hello world and more"));
	assert_int_equal(open_blob(&b, &e), 0);
	assert_int_equal(b.have, 0);
	blob_file_close(&b);
}

static void refuses_what_is_wrong(void **state)
{
	struct err e = ERR_NONE;
	struct blob_file b;

	assert_int_equal(open_blob(&b, &e), 0);
	assert_int_equal(blob_file_add(&b, VIEW("hello world!"), &e), -EBADMSG);
	assert_int_equal(b.have, 0);
	assert_int_equal(blob_file_add(&b, VIEW("hello wurld"), &e), 0);
	assert_int_equal(blob_file_finish(&b, &e), -EBADMSG);
	assert_false(exists(HEX));
	assert_false(exists(HEX ".part"));
}

static void does_not_trust_a_spoilt_blob(void **state)
{
	struct err e = ERR_NONE;
	struct blob_file b;

	put(HEX, VIEW("hello wurld"));
	assert_int_equal(open_blob(&b, &e), 0);
	assert_int_equal(b.have, 0);
	assert_false(exists(HEX));
	blob_file_close(&b);
}

static void is_written_by_one_at_a_time(void **state)
{
	struct err e = ERR_NONE;
	struct blob_file one, two;

	assert_int_equal(open_blob(&one, &e), 0);
	assert_int_equal(blob_file_add(&one, VIEW("hell"), &e), 0);
	assert_int_equal(open_blob(&two, &e), -EBUSY);
	assert_int_equal(two.have, 4);
	blob_file_close(&one);
	assert_int_equal(open_blob(&two, &e), 0);
	assert_int_equal(two.have, 4);
	assert_int_equal(blob_file_add(&two, VIEW("o world"), &e), 0);
	assert_int_equal(blob_file_finish(&two, &e), 0);
}

static void follows_no_links(void **state)
{
	struct err e = ERR_NONE;
	struct blob_file b;

	assert_int_equal(symlinkat("elsewhere", dir_fd, HEX ".part"), 0);
	assert_int_equal(open_blob(&b, &e), -ELOOP);
	assert_false(exists("elsewhere"));
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, make_dir, remove_dir)
	const struct CMUnitTest tests[] = {
		TEST(becomes_a_blob_when_it_is_right),
		TEST(goes_on_behind_what_is_there),
		TEST(begins_again_with_what_is_too_long),
		TEST(refuses_what_is_wrong),
		TEST(does_not_trust_a_spoilt_blob),
		TEST(is_written_by_one_at_a_time),
		TEST(follows_no_links),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
