/*
 * Tar archives: what is told does not depend on how the bytes are cut; contents lie in their file,
 * in order, and are as long as promised.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "codec/sha256.h"
#include "codec/tar_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	struct sha256 sum;
	uint64_t size, stored, got, end;
};

static void note(struct seen *s, struct view v)
{
	uint64_t len = v.len;

	sha256_add(&s->sum, view_mem(&len, sizeof(len)));
	sha256_add(&s->sum, v);
}

static int member(void *arg, const struct tar_member *m, struct err *e)
{
	struct seen *s = arg;
	uint64_t numbers[] = {(uint64_t)m->kind,    m->mode,	 m->uid, m->gid,   m->size,
			      (uint64_t)m->mtime_s, m->mtime_ns, m->at,	 m->stored};

	(void)e;
	assert(!view_has(m->path, '\0') && m->path.p[m->path.len] == '\0');
	assert(!view_has(m->target, '\0') && m->target.p[m->target.len] == '\0');
	assert(m->kind == TAR_FILE || m->size == 0);
	assert(m->mtime_ns < 1000000000);
	note(s, m->path);
	note(s, m->target);
	note(s, view_mem(numbers, sizeof(numbers)));
	for (size_t i = 0; i < m->xattrs_n; i++) {
		note(s, m->xattrs[i].name);
		note(s, m->xattrs[i].value);
	}
	s->size = m->size;
	s->stored = m->stored;
	s->got = s->end = 0;
	return 0;
}

static int content(void *arg, uint64_t at, struct view bytes, struct err *e)
{
	struct seen *s = arg;

	(void)e;
	assert(bytes.len > 0 && at >= s->end && at <= s->size && bytes.len <= s->size - at);
	for (size_t i = 0; i < bytes.len; i++) {
		uint64_t place = at + i;

		sha256_add(&s->sum, view_mem(&place, sizeof(place)));
		sha256_add(&s->sum, view_mem(bytes.p + i, 1));
	}
	s->end = at + bytes.len;
	s->got += bytes.len;
	return 0;
}

static int member_end(void *arg, struct err *e)
{
	struct seen *s = arg;

	(void)e;
	assert(s->got == s->stored);
	note(s, VIEW("end"));
	return 0;
}

static const struct tar_reader_ops ops = {member, content, member_end};

static int run(struct view in, size_t step, unsigned char sum[SHA256_BYTES])
{
	osb_cleanup(tar_reader_freep) struct tar_reader *t = NULL;
	struct err e = ERR_NONE;
	struct seen s = {0};
	int r = 0;

	sha256_init(&s.sum);
	t = tar_reader_new(&ops, &s);
	for (; r == 0 && in.len > 0; in = view_skip(in, step))
		r = tar_reader_feed(t, view_first(in, step), &e);
	if (r == 0)
		r = tar_reader_finish(t, &e);
	assert(r == 0 || (r < 0 && e.code == r && e.msg[0]));
	sha256_done(&s.sum, sum);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view in = view_mem(data, size);
	unsigned char whole[SHA256_BYTES], pieces[SHA256_BYTES];
	int r = run(in, size + 1, whole);

	assert(run(in, 97, pieces) == r);
	assert(memcmp(whole, pieces, sizeof(whole)) == 0);
	return 0;
}
