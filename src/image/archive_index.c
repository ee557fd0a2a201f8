/*
 * image/archive_index.c - one pass over the headers; contents are skipped where that is possible.
 */
#include "image/archive_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "codec/tar_reader.h"
#include "image/decoder.h"
#include "image/layer_path.h"

#define ARENA_MAX (8 << 20)
#define CHUNK	  65536
#define LINKS_MAX 4 /* in a row */

/* manifest.json, index.json, oci-layout; HEX.json, HEX.tar, HEX/layer.tar; blobs/sha256/HEX. */
static bool may_matter(const char *path)
{
	struct view v = view_of(path);

	if (view_starts(v, VIEW("blobs/")) || view_is(v, "oci-layout"))
		return true;
	if (view_ends(v, VIEW("/layer.tar")))
		return view_find(v, '/') == v.len - sizeof("layer.tar");
	return !view_has(v, '/') && (view_ends(v, VIEW(".json")) || view_ends(v, VIEW(".tar")) ||
				     view_ends(v, VIEW(".tar.gz")));
}

/* "a/b" and "../c" are "c". */
static int clean_target(const char *path, struct view target, char ret[LAYER_PATH_MAX + 1])
{
	char joined[2 * LAYER_PATH_MAX + 2];
	struct err ignored = ERR_NONE;
	size_t dir_len;

	(void)layer_path_split(path, &dir_len);
	while (view_starts(target, VIEW("../"))) {
		char dir[LAYER_PATH_MAX + 1];

		if (dir_len == 0)
			return -EBADMSG;
		memcpy(dir, path, dir_len);
		dir[dir_len] = '\0';
		(void)layer_path_split(dir, &dir_len);
		target = view_skip(target, 3);
	}
	if (target.len > LAYER_PATH_MAX)
		return -EBADMSG;
	memcpy(joined, path, dir_len);
	joined[dir_len] = '/';
	memcpy(joined + dir_len + 1, target.p, target.len);
	return layer_path_clean(view_mem(joined, dir_len + 1 + target.len), ret, &ignored);
}

static int add(struct archive_index *x, const char *path, const struct tar_member *m, struct err *e)
{
	struct archive_file *f = &x->files[x->n];
	char target[LAYER_PATH_MAX + 1];

	*f = (struct archive_file){.at = m->at, .len = m->size};
	f->path = arena_strndup(&x->arena, path, strlen(path));
	if (m->kind != TAR_FILE) {
		/* Of a hard link it is the whole path. */
		if (m->kind == TAR_HARDLINK ? layer_path_clean(m->target, target, e) < 0
					    : clean_target(path, m->target, target) < 0)
			return 0;
		f->target = arena_strndup(&x->arena, target, strlen(target));
	}
	if (!f->path || (m->kind != TAR_FILE && !f->target))
		return err_set(e, -EFBIG, "the archive has too many files for an image");
	x->n++;
	return 0;
}

static int on_member(void *arg, const struct tar_member *m, struct err *e)
{
	struct archive_index *x = arg;
	char path[LAYER_PATH_MAX + 1];
	struct err ignored = ERR_NONE;

	if ((m->kind != TAR_FILE && m->kind != TAR_SYMLINK && m->kind != TAR_HARDLINK) ||
	    m->sparse || layer_path_clean(m->path, path, &ignored) < 0 || !may_matter(path))
		return 0;
	/* Beyond that it is no image, or one that we do not want. */
	return x->n < ARCHIVE_INDEX_MAX ? add(x, path, m, e) : 0;
}

static int on_content(void *arg, uint64_t at, struct view bytes, struct err *e)
{
	(void)arg;
	(void)at;
	(void)bytes;
	(void)e;
	return 0;
}

static int on_member_end(void *arg, struct err *e)
{
	(void)arg;
	(void)e;
	return 0;
}

static const struct tar_reader_ops reader_ops = {on_member, on_content, on_member_end};

/* Jumps over contents. */
static int read_plain(struct archive_index *x, struct tar_reader *t, int fd, uint64_t len,
		      struct err *e)
{
	osb_cleanup(mem_freep) char *chunk = mem_alloc(CHUNK);
	uint64_t at = 0;
	int r = 0;

	while (r == 0 && at < len) {
		ssize_t n = pread(fd, chunk, CHUNK, (off_t)at);
		uint64_t skip;

		if (n <= 0)
			return err_set(e, n < 0 ? -errno : -EBADMSG, "the archive is cut off");
		r = tar_reader_feed(t, view_mem(chunk, (size_t)n), e);
		at += (uint64_t)n;
		skip = r == 0 ? tar_reader_skippable(t) : 0;
		if (skip > 0 && at < len) {
			skip = skip < len - at ? skip : len - at;
			tar_reader_skip(t, skip);
			at += skip;
		}
	}
	x->plain_bytes = len;
	return r;
}

static int read_compressed(struct archive_index *x, struct tar_reader *t, struct decoder *d,
			   uint64_t max_bytes, struct err *e)
{
	osb_cleanup(mem_freep) char *chunk = mem_alloc(CHUNK);
	size_t n = CHUNK;
	int r = 0;

	while (r == 0 && n == CHUNK) {
		r = decoder_read(d, chunk, CHUNK, &n, e);
		if (r < 0)
			return r;
		x->plain_bytes += n;
		if (x->plain_bytes > max_bytes)
			return err_set(e, -EFBIG, "there are more than %ju bytes",
				       (uintmax_t)max_bytes);
		r = tar_reader_feed(t, view_mem(chunk, n), e);
	}
	return r;
}

int archive_index_read(struct archive_index *x, int fd, uint64_t len, uint64_t max_bytes,
		       struct err *e)
{
	osb_cleanup(tar_reader_freep) struct tar_reader *t = NULL;
	osb_cleanup(decoder_freep) struct decoder *d = NULL;
	int r;

	memset(x, 0, sizeof(*x));
	arena_init(&x->arena, ARENA_MAX);
	x->files = mem_new_array(struct archive_file, ARCHIVE_INDEX_MAX);
	r = decoder_new(fd, 0, len, NULL, &d, e);
	if (r < 0)
		return r;
	t = tar_reader_new(&reader_ops, x);
	x->compressed = decoder_kind(d) != DECODER_PLAIN;
	r = x->compressed ? read_compressed(x, t, d, max_bytes, e) : read_plain(x, t, fd, len, e);
	if (r == 0)
		r = tar_reader_finish(t, e);
	/* Nobody knows its digest beforehand: half an upload must not pass for a small one. */
	if (r == 0 && !tar_reader_ended(t))
		r = err_set(e, -EBADMSG, "the archive is cut off");
	return r;
}

void archive_index_done(struct archive_index *x)
{
	arena_done(&x->arena);
	free(x->files);
	x->files = NULL;
}

const struct archive_file *archive_index_find(const struct archive_index *x, struct view path)
{
	char clean[LAYER_PATH_MAX + 1];
	struct err ignored = ERR_NONE;
	const char *want = clean;

	if (layer_path_clean(path, clean, &ignored) < 0)
		return NULL;
	for (int links = 0; want && links <= LINKS_MAX; links++) {
		const struct archive_file *found = NULL;

		/* The last of a name counts, as it does where archives are unpacked. */
		for (size_t i = x->n; !found && i-- > 0;)
			if (strcmp(x->files[i].path, want) == 0)
				found = &x->files[i];
		if (!found || !found->target)
			return found;
		want = found->target;
	}
	return NULL;
}
