/*
 * mcp/outputs.c - see outputs.h.
 */
#include "mcp/outputs.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct kept {
	char *sandbox_id, *run_id;
	struct buf text;
};

struct outputs {
	pthread_mutex_t lock;
	struct kept runs[OUTPUTS_RUNS];
	size_t next;
};

struct outputs *outputs_new(void)
{
	struct outputs *o = mem_new(struct outputs);

	(void)pthread_mutex_init(&o->lock, NULL);
	return o;
}

static void kept_done(struct kept *k)
{
	free(k->sandbox_id);
	free(k->run_id);
	buf_done(&k->text);
	*k = (struct kept){0};
}

void outputs_free(struct outputs *o)
{
	if (!o)
		return;
	for (size_t i = 0; i < OUTPUTS_RUNS; i++)
		kept_done(&o->runs[i]);
	(void)pthread_mutex_destroy(&o->lock);
	free(o);
}

void outputs_keep(struct outputs *o, const char *sandbox_id, const char *run_id, struct buf *text)
{
	struct kept *k;

	(void)pthread_mutex_lock(&o->lock);
	k = &o->runs[o->next];
	o->next = (o->next + 1) % OUTPUTS_RUNS;
	kept_done(k);
	k->sandbox_id = mem_strdup(sandbox_id);
	k->run_id = mem_strdup(run_id);
	k->text = *text;
	*text = BUF_INIT(0);
	(void)pthread_mutex_unlock(&o->lock);
}

bool outputs_read(struct outputs *o, const char *sandbox_id, const char *run_id, uint64_t from,
		  size_t max, struct buf *ret, uint64_t *ret_total)
{
	bool found = false;

	(void)pthread_mutex_lock(&o->lock);
	for (size_t i = 0; !found && i < OUTPUTS_RUNS; i++) {
		const struct kept *k = &o->runs[i];

		if (!k->run_id || strcmp(k->run_id, run_id) != 0 ||
		    strcmp(k->sandbox_id, sandbox_id) != 0)
			continue;
		*ret_total = k->text.len;
		found = buf_append_view(ret,
					view_first(view_skip(buf_view(&k->text), from), max)) == 0;
	}
	(void)pthread_mutex_unlock(&o->lock);
	return found;
}

/* ---- excerpts ---- */

void excerpt_init(struct excerpt *x)
{
	*x = (struct excerpt){.head = BUF_INIT(OUTPUTS_SHOWN),
			      .tail = BUF_INIT(3u * OUTPUTS_SHOWN)};
}

void excerpt_done(struct excerpt *x)
{
	buf_done(&x->head);
	buf_done(&x->tail);
}

void excerpt_add(struct excerpt *x, const char *text, size_t n)
{
	size_t first = MIN(n, OUTPUTS_SHOWN - x->head.len);

	x->total += n;
	if (first && buf_append(&x->head, text, first) < 0)
		return;
	text += first;
	n -= first;
	if (n > OUTPUTS_SHOWN) {
		text += n - OUTPUTS_SHOWN;
		n = OUTPUTS_SHOWN;
		buf_clear(&x->tail);
	}
	if (x->tail.len + n > x->tail.max)
		buf_consume(&x->tail, x->tail.len - OUTPUTS_SHOWN);
	/* There is room: that was seen to. */
	(void)!buf_append(&x->tail, text, n);
}

uint64_t excerpt_left_out(const struct excerpt *x)
{
	uint64_t behind = x->total - x->head.len;

	return behind > OUTPUTS_SHOWN ? behind - OUTPUTS_SHOWN : 0;
}

struct view excerpt_text(struct excerpt *x, const char *run_id, struct buf *room)
{
	struct view tail = buf_view(&x->tail);
	int r;

	if (tail.len > OUTPUTS_SHOWN)
		tail = view_skip(tail, tail.len - OUTPUTS_SHOWN);
	r = buf_append_view(room, buf_view(&x->head));
	if (r == 0 && excerpt_left_out(x))
		r = buf_printf(room,
			       "\n[... %" PRIu64 " bytes are left out here; command_logs with "
			       "execution_id \"%s\" and cursor 0 reads everything ...]\n",
			       excerpt_left_out(x), run_id);
	if (r == 0)
		r = buf_append_view(room, tail);
	return r < 0 ? VIEW_NONE : buf_view(room);
}
