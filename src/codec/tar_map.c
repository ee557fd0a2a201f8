/*
 * codec/tar_map.c - a list of pieces with a ceiling.
 */
#include "codec/tar_map.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/num.h"

void tar_map_clear(struct tar_map *m)
{
	m->n = 0;
	m->half = false;
}

void tar_map_done(struct tar_map *m)
{
	free(m->pieces);
	*m = (struct tar_map){0};
}

int tar_map_add(struct tar_map *m, uint64_t at, uint64_t len)
{
	if (m->n == TAR_MAP_MAX)
		return -EBADMSG;
	if (m->n == m->cap) {
		m->cap = m->cap ? m->cap * 2 : 64;
		m->pieces = mem_resize(m->pieces, m->cap, sizeof(m->pieces[0]));
	}
	m->pieces[m->n++] = (struct tar_piece){at, len};
	return 0;
}

int tar_map_add_number(struct tar_map *m, uint64_t n, bool is_len)
{
	if (is_len != m->half)
		return -EBADMSG;
	m->half = !is_len;
	if (!is_len)
		return tar_map_add(m, n, 0);
	m->pieces[m->n - 1].len = n;
	return 0;
}

int tar_map_add_text(struct tar_map *m, struct view numbers, char separator)
{
	struct view one;
	int r = 0;

	while (r == 0 && view_split(&numbers, separator, &one)) {
		uint64_t n;

		r = num_parse_u64(one, &n) ? tar_map_add_number(m, n, m->half) : -EBADMSG;
	}
	return r;
}

int tar_map_check(const struct tar_map *m, uint64_t real_size, uint64_t stored, struct err *e)
{
	uint64_t end = 0, sum = 0;

	for (size_t i = 0; i < m->n; i++) {
		const struct tar_piece *p = &m->pieces[i];

		if (p->at < end || p->at > real_size || p->len > real_size - p->at)
			return err_set(e, -EBADMSG, "the pieces of a sparse file overlap");
		end = p->at + p->len;
		sum += p->len; /* never more than real_size */
	}
	if (m->half || sum != stored)
		return err_set(e, -EBADMSG, "the pieces of a sparse file do not add up");
	return 0;
}
