/*
 * test_bucket_program.c - how each program that mounts buckets is spoken to.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/json.h"
#include "imager/bucket.h"

/* All words, with a blank behind each. */
static void join(const struct strv *args, char *text, size_t size)
{
	size_t at = 0;

	text[0] = '\0';
	for (size_t i = 0; i < args->len && at < size; i++)
		at += (size_t)snprintf(text + at, size - at, "%s ", args->v[i]);
}

static void speaks_to_each(void **state)
{
	static const struct {
		int kind;
		const char *endpoint;
		bool read_only;
		const char *command, *keys;
	} cases[] = {
		{BUCKET_OSSFS, "oss.example", false,
		 "/p/x b /m -o url=https://oss.example -o passwd_file=/dev/fd/3 -o allow_other "
		 "-o umask=022 -o ro_ ",
		 "b:id:secret\n"},
		{BUCKET_S3FS, "http://s3:9000", true,
		 "/p/x b /m -o url=http://s3:9000 -o passwd_file=/dev/fd/3 -o allow_other -o ro "
		 "-o umask=022 -o ro_ ",
		 "id:secret\n"},
		{BUCKET_OSSFS2, "oss.example", false, "/p/x mount /m -c /dev/fd/3 ",
		 "--oss_endpoint=oss.example\n--oss_bucket=b\n--oss_access_key_id=id\n"
		 "--oss_access_key_secret=secret\n--umask=022\n--ro_\n"},
	};
	osb_cleanup(json_freep) struct json *options = NULL;
	struct err e = ERR_NONE;

	(void)state;
	assert_int_equal(json_parse(VIEW("[\"umask=022\",\"ro_\"]"), 0, &options, &e), 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		osb_cleanup(buf_done) struct buf keys = BUF_INIT(4096);
		osb_cleanup(strv_done) struct strv args = STRV_INIT;
		struct bucket_program p = {.path = "/p/x"};
		struct bucket b = {
			.bucket = VIEW("b"),
			.endpoint = view_of(cases[i].endpoint),
			.key_id = VIEW("id"),
			.key_secret = VIEW("secret"),
			.options = options,
			.read_only = cases[i].read_only,
		};
		char text[512];

		p.kind = cases[i].kind;
		assert_int_equal(bucket_command(&p, &b, "/m", &args, &keys, &e), 0);
		join(&args, text, sizeof(text));
		assert_string_equal(text, cases[i].command);
		assert_string_equal(buf_str(&keys), cases[i].keys);
		assert_null(strstr(text, "secret")); /* anybody may read a command line */
	}
}

static void takes_the_program_that_is_named(void **state)
{
	struct bucket_program p;
	struct err e = ERR_NONE;

	(void)state;
	assert_int_equal(bucket_find_program(VIEW("2.0"), "/bin/sh", &p, &e), 0);
	assert_string_equal(p.path, "/bin/sh");
	assert_int_equal(p.kind, BUCKET_OSSFS);
	assert_int_equal(bucket_find_program(VIEW("2.0"), "/nowhere/s3fs", &p, &e), -ENOENT);
	assert_non_null(strstr(e.msg, "/nowhere/s3fs"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(speaks_to_each),
		cmocka_unit_test(takes_the_program_that_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
