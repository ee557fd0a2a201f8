/*
 * Archives byte by byte: what the writer writes, the reader tells; what is no archive is refused.
 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/tar_reader.h"

struct seen {
	struct buf text; /* one line a member */
	uint64_t got;
};

static int member(void *arg, const struct tar_member *m, struct err *e)
{
	struct seen *s = arg;

	(void)e;
	s->got = 0;
	assert_int_equal(buf_printf(&s->text, "%c %.*s>%.*s %o %ju:%ju %ju @%jd.%u x%zu\n",
				    (char)m->kind, VIEW_ARG(view_first(m->path, 40)),
				    VIEW_ARG(view_first(m->target, 40)), m->mode, (uintmax_t)m->uid,
				    (uintmax_t)m->gid, (uintmax_t)m->size, (intmax_t)m->mtime_s,
				    m->mtime_ns, m->xattrs_n),
			 0);
	return 0;
}

static int content(void *arg, uint64_t at, struct view bytes, struct err *e)
{
	struct seen *s = arg;

	(void)e;
	assert_int_equal(at, s->got);
	s->got += bytes.len;
	return 0;
}

static int member_end(void *arg, struct err *e)
{
	struct seen *s = arg;

	(void)e;
	return buf_printf(&s->text, "  %ju\n", (uintmax_t)s->got);
}

static const struct tar_reader_ops ops = {member, content, member_end};

static int read_all(struct view in, size_t step, struct seen *s, struct err *e)
{
	struct tar_reader *t = tar_reader_new(&ops, s);
	int r = 0;

	for (; r == 0 && in.len > 0; in = view_skip(in, step))
		r = tar_reader_feed(t, view_first(in, step), e);
	if (r == 0)
		r = tar_reader_finish(t, e);
	tar_reader_free(t);
	return r;
}

static void put(struct buf *out, const struct tar_entry *t, const char *text)
{
	assert_int_equal(tar_put_header(out, t), 0);
	assert_int_equal(buf_append_str(out, text), 0);
	assert_int_equal(tar_put_padding(out, strlen(text)), 0);
}

static void make_archive(struct buf *out)
{
	static const struct tar_xattr xattrs[] = {{VIEW("user.a"), VIEW("x\0y")},
						  {VIEW("user.empty"), VIEW("")}};
	static char path[300], target[200];

	memset(path, 'p', sizeof(path));
	memset(target, 't', sizeof(target));
	put(out, &(struct tar_entry){.kind = TAR_DIR, .path = VIEW("d/"), .mode = 01777}, "");
	put(out,
	    &(struct tar_entry){.kind = TAR_FILE,
				.path = view_mem(path, sizeof(path)),
				.mode = 04755,
				.uid = 1 << 24,
				.gid = 7,
				.size = 5,
				.mtime_s = 1700000000,
				.xattrs = xattrs,
				.xattrs_n = ARRAY_LEN(xattrs)},
	    "hello");
	put(out,
	    &(struct tar_entry){.kind = TAR_HARDLINK, .path = VIEW("h"), .target = VIEW("d/f")},
	    "");
	put(out,
	    &(struct tar_entry){.kind = TAR_SYMLINK,
				.path = VIEW("s"),
				.target = view_mem(target, sizeof(target))},
	    "");
	put(out, &(struct tar_entry){.kind = TAR_FILE, .path = VIEW("empty")}, "");
	assert_int_equal(tar_put_end(out), 0);
}

static void tells_what_the_writer_wrote(void **state)
{
	static const size_t steps[] = {1, 7, 511, 512, 513, 100000};
	struct buf in = BUF_INIT(1 << 20);

	(void)state;
	make_archive(&in);
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		struct seen s = {.text = BUF_INIT(65536)};
		struct err e = ERR_NONE;

		assert_int_equal(read_all(buf_view(&in), steps[i], &s, &e), 0);
		assert_string_equal(buf_str(&s.text),
				    "5 d/> 1777 0:0 0 @0.0 x0\n"
				    "0 pppppppppppppppppppppppppppppppppppppppp> 4755 16777216:7 5 "
				    "@1700000000.0 x2\n"
				    "  5\n"
				    "1 h>d/f 0 0:0 0 @0.0 x0\n"
				    "2 s>tttttttttttttttttttttttttttttttttttttttt 0 0:0 0 @0.0 x0\n"
				    "0 empty> 0 0:0 0 @0.0 x0\n"
				    "  0\n");
		buf_done(&s.text);
	}
	buf_done(&in);
}

/* Wherever it is cut, but between members: some programs write no end. */
static void an_archive_that_is_cut_off_is_none(void **state)
{
	struct buf in = BUF_INIT(1 << 20);

	(void)state;
	make_archive(&in);
	for (size_t n = 1; n < in.len - 1024; n += 13) {
		struct seen s = {.text = BUF_INIT(65536)};
		struct err e = ERR_NONE;
		int r = read_all(view_first(buf_view(&in), n), 512, &s, &e);

		if (n % TAR_BLOCK != 0)
			assert_int_equal(r, -EBADMSG);
		buf_done(&s.text);
	}
	buf_done(&in);
}

static void no_damage_goes_unseen_in_headers(void **state)
{
	struct buf in = BUF_INIT(1 << 20);

	(void)state;
	make_archive(&in);
	for (size_t at = 0; at < TAR_BLOCK; at++) {
		struct seen s = {.text = BUF_INIT(65536)};
		struct err e = ERR_NONE;

		in.mem[in.start + at] ^= 1;
		assert_int_equal(read_all(buf_view(&in), 4096, &s, &e), -EBADMSG);
		in.mem[in.start + at] ^= 1;
		buf_done(&s.text);
	}
	buf_done(&in);
}

static int pax(const char *records, struct seen *s, struct err *e)
{
	struct buf in = BUF_INIT(65536);
	struct tar_entry x = {
		.kind = (enum tar_kind)'x', .path = VIEW("x"), .size = strlen(records)};
	int r;

	put(&in, &x, records);
	put(&in, &(struct tar_entry){.kind = TAR_FILE, .path = VIEW("f")}, "");
	assert_int_equal(tar_put_end(&in), 0);
	r = read_all(buf_view(&in), 4096, s, e);
	buf_done(&in);
	return r;
}

static void understands_pax_records(void **state)
{
	static const struct {
		const char *records, *told;
	} cases[] = {
		{"10 path=q\n", "0 q> 0 0:0 0 @0.0 x0\n  0\n"},
		{"10 path=q\n10 path=r\n", "0 r> 0 0:0 0 @0.0 x0\n  0\n"},
		{"13 mtime=1.5\n", "0 f> 0 0:0 0 @1.500000000 x0\n  0\n"},
		{"14 mtime=-1.5\n", "0 f> 0 0:0 0 @-2.500000000 x0\n  0\n"},
		{"13 uid=70000\n", "0 f> 0 70000:0 0 @0.0 x0\n  0\n"},
		{"8 path=\n", "0 f> 0 0:0 0 @0.0 x0\n  0\n"},
		{"18 comment=nothing\n", NULL},
		{"19 comment=nothing\n", "0 f> 0 0:0 0 @0.0 x0\n  0\n"},
		{"10 path=q", NULL},
		{"99 path=q\n", NULL},
		{"0 path=q\n", NULL},
		{"x path=q\n", NULL},
		{"6 =qq\n", NULL},
		{"11 mtime=x\n", NULL},
		{"10 size=x\n", NULL},
		{"26 SCHILY.xattr.user.a=xy\n", "0 f> 0 0:0 0 @0.0 x1\n  0\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct seen s = {.text = BUF_INIT(65536)};
		struct err e = ERR_NONE;
		int r = pax(cases[i].records, &s, &e);

		if (cases[i].told) {
			if (r != 0 || strcmp(buf_str(&s.text), cases[i].told) != 0)
				fail_msg("case %zu: %d %s", i, r, buf_str(&s.text));
		} else {
			assert_int_equal(r, -EBADMSG);
		}
		buf_done(&s.text);
	}
}

static void passes_over_contents(void **state)
{
	struct tar_reader *t;
	struct seen s = {.text = BUF_INIT(65536)};
	struct buf in = BUF_INIT(65536);
	struct err e = ERR_NONE;
	char text[5000];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	put(&in, &(struct tar_entry){.kind = TAR_FILE, .path = VIEW("a"), .size = 4999}, text);
	put(&in, &(struct tar_entry){.kind = TAR_FILE, .path = VIEW("b"), .size = 1}, "x");
	assert_int_equal(tar_put_end(&in), 0);
	t = tar_reader_new(&ops, &s);
	assert_int_equal(tar_reader_feed(t, view_first(buf_view(&in), 512), &e), 0);
	assert_int_equal(tar_reader_skippable(t), 4998);
	tar_reader_skip(t, 4998);
	s.got = 4998;
	assert_int_equal(tar_reader_feed(t, view_skip(buf_view(&in), 512 + 4998), &e), 0);
	assert_int_equal(tar_reader_finish(t, &e), 0);
	assert_true(tar_reader_ended(t));
	assert_non_null(strstr(buf_str(&s.text), "0 b> 0 0:0 1 @0.0 x0\n  1\n"));
	tar_reader_free(t);
	buf_done(&in);
	buf_done(&s.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_what_the_writer_wrote),
		cmocka_unit_test(an_archive_that_is_cut_off_is_none),
		cmocka_unit_test(no_damage_goes_unseen_in_headers),
		cmocka_unit_test(understands_pax_records),
		cmocka_unit_test(passes_over_contents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
