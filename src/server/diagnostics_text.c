/*
 * server/diagnostics_text.c - "Name:  value" lines, and events as lines.
 */
#include "server/diagnostics_text.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/json_writer.h"
#include "codec/rfc3339.h"
#include "server/sandboxes.h"
#include "store/store.h"

/* ---- events ---- */

struct events {
	struct buf *out;
	unsigned limit, n;
	bool lifecycle, more;
};

static bool changes_state(const char *reason)
{
	static const char *const reasons[] = {"Created", "Paused", "Resumed", "Exited"};

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (strcmp(reason, reasons[i]) == 0)
			return true;
	return false;
}

static int add_event(void *arg, const struct store_event *ev)
{
	struct events *w = arg;
	char at[RFC3339_MAX];
	int r;

	if (w->lifecycle && !changes_state(ev->reason))
		return 0;
	if (w->n == w->limit) {
		w->more = true;
		return 0;
	}
	w->n++;
	rfc3339_format(ev->at_us * 1000, at);
	r = buf_printf(w->out, "%s %s %s ", at, ev->kind, ev->reason);
	if (r == 0)
		r = json_escape(w->out, view_of(ev->message));
	return r < 0 ? r : buf_append_char(w->out, '\n');
}

int diagnostics_events(struct sandboxes *s, const struct sandbox *b, unsigned limit, bool lifecycle,
		       struct buf *out, bool *ret_truncated, struct err *e)
{
	struct events w = {.out = out, .limit = limit, .lifecycle = lifecycle};
	/* One more than wanted tells whether there are more; a filter has to see them all. */
	unsigned look_at = lifecycle ? UINT32_MAX / 2 : limit + 1;
	int r = sandboxes_each_event(s, b, look_at, add_event, &w, e);

	if (r < 0)
		return e->code ? r : err_set(e, r, "the events are too large for one answer");
	*ret_truncated = w.more;
	return 0;
}

/* ---- inspect ---- */

bool diagnostics_is_secret(const char *name)
{
	static const char *const words[] = {"SECRET", "TOKEN", "PASSWORD", "KEY"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcasestr(name, words[i]))
			return true;
	return false;
}

/* Facts, line by line; the first failure sticks. */
struct facts {
	struct buf *out;
	int failed;
};

static void add(struct facts *w, int r)
{
	if (r < 0 && w->failed == 0)
		w->failed = r;
}

static void add_name(struct facts *w, const char *name)
{
	add(w, buf_printf(w->out, "%-14s ", name));
}

static void add_text(struct facts *w, const char *name, const char *text)
{
	add_name(w, name);
	add(w, json_escape(w->out, view_of(text)));
	add(w, buf_append_char(w->out, '\n'));
}

static void add_time(struct facts *w, const char *name, int64_t unix_us)
{
	char text[RFC3339_MAX];

	rfc3339_format(unix_us * 1000, text);
	add_text(w, name, text);
}

static void add_words(struct facts *w, const char *name, const struct strv *words)
{
	struct json_writer json;

	add_name(w, name);
	json_writer_init(&json, w->out);
	json_write_array(&json);
	for (size_t i = 0; i < words->len; i++)
		json_write_cstr(&json, words->v[i]);
	json_write_array_end(&json);
	add(w, json_writer_end(&json));
	add(w, buf_append_char(w->out, '\n'));
}

static void add_pairs(struct facts *w, const char *name, const struct pairs *p, bool mask)
{
	if (p->n == 0)
		return;
	add(w, buf_printf(w->out, "%s\n", name));
	for (size_t i = 0; i < p->n; i++) {
		bool secret = mask && diagnostics_is_secret(p->v[i].name);

		add(w, buf_append_str(w->out, "  "));
		add(w, json_escape(w->out, view_of(p->v[i].name)));
		add(w, buf_append_char(w->out, '='));
		add(w, json_escape(w->out, view_of(secret ? "***" : p->v[i].value)));
		add(w, buf_append_char(w->out, '\n'));
	}
}

static void add_stats(struct facts *w, const struct runtime_stats *s)
{
	add(w, buf_printf(w->out,
			  "%-14s cpu %" PRIu64 " ms, memory %" PRIu64 " bytes (peak %" PRIu64
			  "), processes %" PRIu64 ", killed for memory %" PRIu64 "\n",
			  "Usage:", s->cpu_usec / 1000, s->memory_bytes, s->memory_peak_bytes,
			  s->pids, s->oom_kills));
}

int diagnostics_inspect(const struct sandbox *b, const char *runtime,
			const struct runtime_stats *stats, struct buf *out)
{
	const struct sandbox_spec *s = &b->spec;
	struct facts w = {.out = out};

	add_text(&w, "Id:", b->id);
	add_text(&w, "State:", sandbox_state_name(b->state));
	add_text(&w, "Reason:", b->reason);
	if (b->message)
		add_text(&w, "Message:", b->message);
	add_time(&w, "Changed:", b->changed_us);
	add_time(&w, "Created:", b->created_us);
	if (b->expires_us)
		add_time(&w, "Expires:", b->expires_us);
	else
		add_text(&w, "Expires:", "never");
	add_text(&w, "Runtime:", runtime);
	if (s->image_uri)
		add_text(&w, "Image:", s->image_uri);
	add_words(&w, "Entrypoint:", &s->entrypoint);
	if (s->os)
		add(&w, buf_printf(out, "%-14s %s/%s\n", "Platform:", s->os, s->arch));
	if (!sandbox_is_over(b))
		add(&w, buf_printf(out, "%-14s %d\n", "Host pid:", b->handle.pid));
	if (stats)
		add_stats(&w, stats);
	add_pairs(&w, "Limits:", &s->limits, false);
	add_pairs(&w, "Requests:", &s->requests, false);
	add_pairs(&w, "Metadata:", &s->metadata, false);
	add_pairs(&w, "Extensions:", &s->extensions, false);
	add_pairs(&w, "Environment:", &s->env, true);
	return w.failed;
}
