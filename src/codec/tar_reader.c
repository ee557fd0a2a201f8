/*
 * codec/tar_reader.c - a state for every kind of block.
 */
#include "codec/tar_reader.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/num.h"
#include "codec/tar_header.h"
#include "codec/tar_map.h"

#define PAX_MAX	      (1024 * 1024) /* records of one file */
#define LONG_NAME_MAX 8192	    /* of GNU's long names */

enum state {
	HEADER,
	MORE_PIECES, /* of GNU's old sparse files */
	NOTE,	     /* pax records, a long name */
	MAP,	     /* pax, sparse 1.0: in front of the content */
	CONTENT,
	PADDING,
	ONE_ZERO, /* of the two blocks at the end */
	END,
};

struct tar_reader {
	const struct tar_reader_ops *ops;
	void *arg;
	enum state state;
	uint64_t at; /* bytes fed */

	char block[TAR_BLOCK]; /* HEADER, MORE_PIECES, MAP, ONE_ZERO */
	size_t block_len;
	uint64_t left;	  /* NOTE, CONTENT, PADDING: bytes to come */
	uint64_t padding; /* behind those */

	/* What was said in front of the next member. */
	char note;		      /* its kind while it comes */
	struct buf pax, path, target; /* the latter two by GNU's long names */

	struct tar_header header;
	struct tar_member member;
	struct tar_pax records;
	struct tar_map map;
	uint64_t map_numbers; /* MAP: to come, 0 = not known yet */
	uint64_t number;      /* MAP: the digits so far */
	bool has_digits;
	size_t piece;	    /* CONTENT of a sparse file */
	uint64_t piece_pos; /* in it */
};

struct tar_reader *tar_reader_new(const struct tar_reader_ops *ops, void *arg)
{
	struct tar_reader *t = mem_new(struct tar_reader);

	t->ops = ops;
	t->arg = arg;
	buf_init(&t->pax, PAX_MAX);
	buf_init(&t->path, LONG_NAME_MAX);
	buf_init(&t->target, LONG_NAME_MAX);
	return t;
}

void tar_reader_free(struct tar_reader *t)
{
	if (!t)
		return;
	buf_done(&t->pax);
	buf_done(&t->path);
	buf_done(&t->target);
	tar_map_done(&t->map);
	free(t);
}

static uint64_t padding_of(uint64_t size)
{
	return (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK;
}

static void begin_run(struct tar_reader *t, enum state state, uint64_t n)
{
	t->state = state;
	t->left = n;
	t->padding = padding_of(n);
}

/* ---- notes ---- */

static struct buf *note_buf(struct tar_reader *t)
{
	return t->note == 'L' ? &t->path : t->note == 'K' ? &t->target : &t->pax;
}

static int begin_note(struct tar_reader *t, struct err *e)
{
	struct buf *b;

	t->note = t->header.kind;
	b = note_buf(t);
	buf_clear(b);
	/* Global records are about archives, not about files: passed over. */
	if (t->note != 'g' && t->header.size > b->max)
		return err_set(e, -EBADMSG, "a name or a pax header is longer than %zu bytes",
			       b->max);
	begin_run(t, NOTE, t->header.size);
	return 0;
}

static int note_ended(struct tar_reader *t)
{
	struct buf *b = note_buf(t);

	if (t->note == 'L' || t->note == 'K')
		buf_truncate(b, view_find(buf_view(b), '\0'));
	t->state = PADDING;
	t->left = t->padding;
	return 0;
}

static void forget_notes(struct tar_reader *t)
{
	buf_clear(&t->pax);
	buf_clear(&t->path);
	buf_clear(&t->target);
	buf_shrink(&t->pax, 65536);
}

/* ---- members ---- */

static bool kind_of(const struct tar_header *h, enum tar_kind *ret)
{
	size_t len = strlen(h->path);

	switch (h->kind) {
	case '\0': /* before there were kinds, a directory was what ended like one */
		*ret = len > 0 && h->path[len - 1] == '/' ? TAR_DIR : TAR_FILE;
		return true;
	case '0':
	case '7': /* contiguous, where there is such a thing */
	case 'S':
		*ret = TAR_FILE;
		return true;
	case '1':
		*ret = TAR_HARDLINK;
		return true;
	case TAR_SYMLINK:
	case TAR_CHAR:
	case TAR_BLOCKDEV:
	case TAR_DIR:
	case TAR_FIFO:
		*ret = (enum tar_kind)h->kind;
		return true;
	default:
		return false;
	}
}

/* Pax before GNU's long names, and those before the header's own field. */
static struct view choose(struct view pax, struct buf *name, const char *field)
{
	if (pax.len > 0)
		return pax;
	return name->len > 0 ? (struct view){buf_str(name), name->len} : view_of(field);
}

static void fill_member(struct tar_reader *t, enum tar_kind kind)
{
	const struct tar_header *h = &t->header;
	const struct tar_pax *p = &t->records;
	struct view path = p->sparse_path.len > 0 ? p->sparse_path : p->path;

	t->member = (struct tar_member){
		.kind = kind,
		.path = choose(path, &t->path, h->path),
		.target = choose(p->target, &t->target, h->target),
		.mode = h->mode,
		.uid = p->has_uid ? p->uid : h->uid,
		.gid = p->has_gid ? p->gid : h->gid,
		.mtime_s = p->has_mtime ? p->mtime_s : h->mtime_s,
		.mtime_ns = p->mtime_ns,
		.xattrs = p->xattrs,
		.xattrs_n = p->xattrs_n,
		.at = t->at,
	};
	if (kind == TAR_FILE) {
		t->member.size = t->member.stored = p->has_size ? p->size : h->size;
		t->member.sparse = h->kind == 'S' || p->is_sparse;
	}
	if (t->member.sparse)
		t->member.size = h->kind == 'S' ? h->real_size : p->real_size;
}

/* Everything that stands in front of the content was read. */
static int tell_member(struct tar_reader *t, struct err *e)
{
	const struct tar_member *m = &t->member;
	int r = 0;

	if (m->sparse)
		r = tar_map_check(&t->map, m->size, m->stored, e);
	if (r == 0 && m->stored > INT64_MAX)
		r = err_set(e, -EBADMSG, "a file of the archive has an impossible size");
	t->piece = 0;
	t->piece_pos = 0;
	t->member.at = t->at;
	if (r == 0)
		r = t->ops->member(t->arg, m, e);
	begin_run(t, CONTENT, m->stored);
	return r;
}

/* Views of pax records are ended by what follows them, '\n': made a NUL, as the header promises. */
static void end_with_nul(struct tar_reader *t, struct view v)
{
	size_t at = (size_t)(v.p - t->pax.mem);

	if (v.len > 0)
		t->pax.mem[at + v.len] = '\0';
}

static int begin_member(struct tar_reader *t, struct err *e)
{
	enum tar_kind kind;
	int r;

	if (!kind_of(&t->header, &kind))
		return err_set(e, -ENOTSUP, "the tar archive has members of the unknown kind '%c'",
			       t->header.kind >= ' ' && t->header.kind < 127 ? t->header.kind
									     : '?');
	tar_map_clear(&t->map);
	r = tar_pax_parse(buf_view(&t->pax), &t->records, &t->map, e);
	if (r < 0)
		return r;
	end_with_nul(t, t->records.path);
	end_with_nul(t, t->records.target);
	end_with_nul(t, t->records.sparse_path);
	fill_member(t, kind);
	for (size_t i = 0; r == 0 && t->header.kind == 'S' && i < t->header.pieces_n; i++)
		r = tar_map_add(&t->map, t->header.pieces[i].at, t->header.pieces[i].len);
	if (r < 0)
		return err_set(e, r, "a sparse file of the tar archive has a bad map");
	if (t->header.kind == 'S' && t->header.more_pieces) {
		t->state = MORE_PIECES;
		return 0;
	}
	if (kind == TAR_FILE && t->records.is_sparse && t->records.map_in_content) {
		t->state = MAP;
		t->map_numbers = t->number = 0;
		t->has_digits = false;
		return 0;
	}
	return tell_member(t, e);
}

static int take_header(struct tar_reader *t, struct err *e)
{
	int r;

	if (tar_header_is_empty(t->block)) {
		t->state = ONE_ZERO;
		return 0;
	}
	r = tar_header_parse(t->block, &t->header, e);
	if (r < 0)
		return r;
	if (strchr("xXgLK", t->header.kind) && t->header.kind)
		return begin_note(t, e);
	return begin_member(t, e);
}

static int take_more_pieces(struct tar_reader *t, struct err *e)
{
	struct tar_piece pieces[TAR_HEADER_MORE_MAP];
	size_t n;
	bool more;
	int r = tar_header_more_pieces(t->block, pieces, &n, &more, e);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if (tar_map_add(&t->map, pieces[i].at, pieces[i].len) < 0)
			return err_set(e, -EBADMSG, "a sparse file has too many pieces");
	return more ? 0 : tell_member(t, e);
}

/* Decimal numbers, one a line: how many pieces, then their places and lengths; zeros up to the end
 * of the block. */
static int take_map(struct tar_reader *t, struct err *e)
{
	bool counted = t->map_numbers > 0, bad = t->member.stored < TAR_BLOCK;

	for (size_t i = 0; !bad && i < TAR_BLOCK; i++) {
		char c = t->block[i];

		if (counted && t->map_numbers == 1)
			break;
		if (c >= '0' && c <= '9') {
			bad = t->number > (UINT64_MAX - 9) / 10;
			t->number = bad ? 0 : t->number * 10 + (uint64_t)(c - '0');
			t->has_digits = true;
			continue;
		}
		bad = c != '\n' || !t->has_digits;
		if (!bad && !counted) {
			bad = t->number > TAR_MAP_MAX;
			t->map_numbers = 1 + 2 * t->number;
			counted = true;
		} else if (!bad) {
			bad = tar_map_add_number(&t->map, t->number, t->map.half) < 0;
			t->map_numbers--;
		}
		t->number = 0;
		t->has_digits = false;
	}
	if (bad)
		return err_set(e, -EBADMSG, "a sparse file of the tar archive has a bad map");
	t->member.stored -= TAR_BLOCK;
	return counted && t->map_numbers == 1 ? tell_member(t, e) : 0;
}

static int take_block(struct tar_reader *t, struct err *e)
{
	switch (t->state) {
	case HEADER:
		return take_header(t, e);
	case MORE_PIECES:
		return take_more_pieces(t, e);
	case MAP:
		return take_map(t, e);
	default: /* ONE_ZERO */
		t->state = END;
		if (!tar_header_is_empty(t->block))
			return err_set(e, -EBADMSG, "the tar archive goes on behind its end");
		return 0;
	}
}

/* ---- bytes ---- */

/* In pieces where the file has holes. */
static int tell_content(struct tar_reader *t, struct view bytes, struct err *e)
{
	int r = 0;

	if (!t->member.sparse)
		return t->ops->content(t->arg, t->member.stored - t->left, bytes, e);
	while (r == 0 && bytes.len > 0) {
		const struct tar_piece *p = &t->map.pieces[t->piece];
		uint64_t left = p->len - t->piece_pos;
		struct view part = view_first(bytes, left < bytes.len ? (size_t)left : bytes.len);

		if (part.len > 0)
			r = t->ops->content(t->arg, p->at + t->piece_pos, part, e);
		t->piece_pos += part.len;
		bytes = view_skip(bytes, part.len);
		if (t->piece_pos == p->len) {
			t->piece++;
			t->piece_pos = 0;
		}
	}
	return r;
}

static int content_ended(struct tar_reader *t, struct err *e)
{
	int r = t->member.kind == TAR_FILE ? t->ops->member_end(t->arg, e) : 0;

	forget_notes(t);
	t->state = PADDING;
	t->left = t->padding;
	return r;
}

/* Runs that are used up, or were empty from the start. */
static int end_runs(struct tar_reader *t, struct err *e)
{
	int r = 0;

	if (t->state == NOTE && t->left == 0)
		r = note_ended(t);
	else if (t->state == CONTENT && t->left == 0)
		r = content_ended(t, e);
	if (t->state == PADDING && t->left == 0)
		t->state = HEADER;
	return r;
}

static size_t take_into_block(struct tar_reader *t, struct view in)
{
	size_t n = MIN(in.len, TAR_BLOCK - t->block_len);

	memcpy(t->block + t->block_len, in.p, n);
	t->block_len += n;
	return n;
}

static int take_run(struct tar_reader *t, struct view part, struct err *e)
{
	int r = 0;

	if (t->state == NOTE && t->note != 'g' && buf_append_view(note_buf(t), part) < 0)
		r = err_set(e, -EBADMSG, "a header of the tar archive is too long");
	else if (t->state == CONTENT)
		r = tell_content(t, part, e);
	t->left -= part.len;
	return r == 0 ? end_runs(t, e) : r;
}

int tar_reader_feed(struct tar_reader *t, struct view bytes, struct err *e)
{
	int r = 0;

	while (r == 0 && bytes.len > 0 && t->state != END) {
		size_t n;

		if (t->state == NOTE || t->state == CONTENT || t->state == PADDING) {
			n = t->left < bytes.len ? (size_t)t->left : bytes.len;
			t->at += n;
			r = take_run(t, view_first(bytes, n), e);
		} else {
			n = take_into_block(t, bytes);
			t->at += n;
			if (t->block_len == TAR_BLOCK) {
				t->block_len = 0;
				r = take_block(t, e);
				if (r == 0)
					r = end_runs(t, e);
			}
		}
		bytes = view_skip(bytes, n);
	}
	return r;
}

int tar_reader_finish(struct tar_reader *t, struct err *e)
{
	bool between = t->state == HEADER && t->block_len == 0 && t->pax.len == 0 &&
		       t->path.len == 0 && t->target.len == 0;

	if (between || t->state == END || (t->state == ONE_ZERO && t->block_len == 0))
		return 0;
	return err_set(e, -EBADMSG, "the tar archive is cut off");
}

bool tar_reader_ended(const struct tar_reader *t)
{
	return t->state == END || t->state == ONE_ZERO;
}

uint64_t tar_reader_skippable(const struct tar_reader *t)
{
	/* At least one byte is left to be fed: the member ends with it. */
	return t->state == CONTENT && !t->member.sparse ? t->left - 1 : 0;
}

void tar_reader_skip(struct tar_reader *t, uint64_t n)
{
	assert(n <= tar_reader_skippable(t));
	t->left -= n;
	t->at += n;
}
