/*
 * Archives that every tar and gzip reads; checked byte by byte where it matters.
 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "codec/gzip.h"
#include "codec/tar.h"

static void writes_a_plain_header(void **state)
{
	struct buf out = BUF_INIT(65536);
	struct tar_entry t = {.kind = TAR_FILE,
			      .path = VIEW("dir/file"),
			      .mode = 0644,
			      .uid = 1000,
			      .gid = 100,
			      .size = 1234,
			      .mtime_s = 1700000000};
	const char *p;

	assert_int_equal(tar_put_header(&out, &t), 0);
	assert_int_equal(out.len, TAR_BLOCK);
	p = buf_view(&out).p;
	assert_string_equal(p, "dir/file");
	assert_memory_equal(p + 100, "0000644", 8);
	assert_memory_equal(p + 108, "0001750", 8);
	assert_memory_equal(p + 124, "00000002322", 12);
	assert_int_equal(p[156], '0');
	assert_memory_equal(p + 257,
			    "ustar\0"
			    "00",
			    8);
	buf_done(&out);
}

static void checksum_adds_up(void **state)
{
	struct buf out = BUF_INIT(65536);
	struct tar_entry t = {.kind = TAR_DIR, .path = VIEW("d/"), .mode = 0755};
	unsigned sum = 0;
	const unsigned char *p;

	assert_int_equal(tar_put_header(&out, &t), 0);
	p = (const unsigned char *)buf_view(&out).p;
	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += i >= 148 && i < 156 ? ' ' : p[i];
	assert_int_equal(strtoul((const char *)p + 148, NULL, 8), sum);
	buf_done(&out);
}

static void long_names_become_pax_records(void **state)
{
	static const size_t lengths[] = {100, 101, 150, 991, 992, 1000, 9000};

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		struct buf out = BUF_INIT(65536);
		char name[9001];
		struct tar_entry t = {.kind = TAR_FILE, .path = {name, lengths[i]}};
		const char *p;

		memset(name, 'n', sizeof(name));
		assert_int_equal(tar_put_header(&out, &t), 0);
		assert_int_equal(out.len % TAR_BLOCK, 0);
		p = buf_view(&out).p;
		if (lengths[i] <= 100) {
			assert_int_equal(out.len, TAR_BLOCK);
		} else {
			size_t size = strtoul(p + 124, NULL, 8);

			assert_int_equal(p[156], 'x');
			assert_int_equal(strtoul(p + TAR_BLOCK, NULL, 10), size);
			assert_int_equal(p[TAR_BLOCK + size - 1], '\n');
			assert_non_null(memmem(p + TAR_BLOCK, 16, " path=nn", 8));
		}
		buf_done(&out);
	}
}

static void numbers_that_do_not_fit_become_pax_records(void **state)
{
	struct buf out = BUF_INIT(65536);
	struct tar_entry t = {.kind = TAR_FILE,
			      .path = VIEW("f"),
			      .uid = UINT32_MAX,
			      .size = UINT64_C(1) << 40,
			      .mtime_s = -5};

	assert_int_equal(tar_put_header(&out, &t), 0);
	assert_non_null(memmem(buf_view(&out).p, out.len, "18 uid=4294967295\n", 18));
	assert_non_null(memmem(buf_view(&out).p, out.len, "22 size=1099511627776\n", 22));
	buf_done(&out);
}

static void a_full_buffer_keeps_no_half_header(void **state)
{
	struct buf out = BUF_INIT(1000);
	struct tar_entry t = {.kind = TAR_FILE, .path = VIEW("f"), .uid = UINT32_MAX};

	assert_int_equal(tar_put_header(&out, &t), -E2BIG);
	assert_int_equal(out.len, 0);
	buf_done(&out);
}

static void pads_to_whole_blocks(void **state)
{
	static const struct {
		uint64_t size;
		size_t padding;
	} cases[] = {{0, 0}, {1, 511}, {511, 1}, {512, 0}, {513, 511}, {UINT64_C(1) << 40, 0}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct buf out = BUF_INIT(1024);

		assert_int_equal(tar_put_padding(&out, cases[i].size), 0);
		assert_int_equal(out.len, cases[i].padding);
		buf_done(&out);
	}
}

static void gzip_frames_stored_blocks(void **state)
{
	static const unsigned char want[] = {
		0x1f, 0x8b, 8,	  0,	0,    0,   0,	0,    0,    255, /* header */
		0,    9,    0,	  0xf6, 0xff, '1', '2', '3',  '4',  '5',
		'6',  '7',  '8',  '9',	1,    0,   0,	0xff, 0xff, /* the last, empty block */
		0x26, 0x39, 0xf4, 0xcb,				    /* CRC-32 of "123456789" */
		9,    0,    0,	  0,
	};
	struct buf out = BUF_INIT(1024);
	struct gzip z;

	assert_int_equal(gzip_begin(&z, &out), 0);
	assert_int_equal(gzip_put(&z, &out, VIEW("123456789")), 0);
	assert_int_equal(gzip_end(&z, &out), 0);
	assert_int_equal(out.len, sizeof(want));
	assert_memory_equal(buf_view(&out).p, want, sizeof(want));
	buf_done(&out);
}

static void gzip_cuts_long_input_into_blocks(void **state)
{
	struct buf out = BUF_INIT(300000);
	char *zeros = calloc(1, 200000);
	struct gzip z;

	assert_int_equal(gzip_begin(&z, &out), 0);
	assert_int_equal(gzip_put(&z, &out, view_mem(zeros, 200000)), 0);
	assert_int_equal(gzip_end(&z, &out), 0);
	assert_int_equal(out.len, 10 + 200000 + 4 * 5 + 5 + 8);
	free(zeros);
	buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_a_plain_header),
		cmocka_unit_test(checksum_adds_up),
		cmocka_unit_test(long_names_become_pax_records),
		cmocka_unit_test(numbers_that_do_not_fit_become_pax_records),
		cmocka_unit_test(a_full_buffer_keeps_no_half_header),
		cmocka_unit_test(pads_to_whole_blocks),
		cmocka_unit_test(gzip_frames_stored_blocks),
		cmocka_unit_test(gzip_cuts_long_input_into_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
