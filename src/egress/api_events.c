/*
 * egress/api_events.c - what was decided, and the policy that can be made of it.
 */
#include <stdint.h>

#include "base/buf.h"
#include "base/num.h"
#include "codec/json_writer.h"
#include "codec/rfc3339.h"
#include "codec/url.h"
#include "egress/api_int.h"
#include "egress/box.h"
#include "egress/decisions.h"
#include "egress/learn.h"
#include "net/http_server.h"
#include "net/router.h"

#define EVENTS_MAX 1000
#define ANSWER_MAX (16u << 20)
#define LINES_TYPE "application/x-ndjson"

/* False: it is there and no number, and the client was told. */
static bool read_number(struct http_exchange *x, const char *name, uint64_t max, uint64_t *ret)
{
	struct view text;
	int r = url_query_get(http_arena(x), http_query(x), name, &text);

	if (r == 0)
		return true;
	if (r > 0 && num_parse_u64(text, ret) && *ret <= max)
		return true;
	api_reply_text(x, 400, "%s must be a number up to %llu", name, (unsigned long long)max);
	return false;
}

/* ---- GET /policy/events ---- */

static bool wants_lines(struct http_exchange *x, bool *ret)
{
	struct view text;

	*ret = http_header(x, "Accept", &text) && view_starts(text, VIEW(LINES_TYPE));
	if (url_query_get(http_arena(x), http_query(x), "format", &text) <= 0)
		return true;
	*ret = view_is(text, "lines");
	if (*ret || view_is(text, "array"))
		return true;
	api_reply_text(x, 400, "format must be lines or array");
	return false;
}

static void get_events(struct http_exchange *x, void *app)
{
	const struct api_target *t = app;
	osb_cleanup(buf_done) struct buf out = BUF_INIT(ANSWER_MAX);
	uint64_t limit = EVENTS_MAX, since = 0;
	bool lines;

	if (!read_number(x, "limit", EVENTS_MAX, &limit) ||
	    !read_number(x, "since", INT64_MAX, &since) || !wants_lines(x, &lines))
		return;
	if (decisions_write(t->box->decisions, since, limit, lines, &out) < 0)
		api_reply_text(x, 500, "the answer is too large");
	else if (lines)
		http_reply(x, 200, LINES_TYPE, buf_view(&out));
	else
		api_reply_json(x, &out);
}

/* ---- GET /policy/suggestion ---- */

static void write_suggestion(struct json_writer *w, const struct box *b, size_t many)
{
	const struct learn *learned = decisions_learned(b->decisions);
	osb_cleanup(net_policy_done) struct net_policy p = NET_POLICY_NONE;
	char since[RFC3339_MAX];

	learn_suggest(learned, many, &p);
	rfc3339_format((int64_t)(learn_since_ns(learned) / 1000000 * 1000000), since);
	json_write_object(w);
	json_put_cstr(w, "status", "ok");
	json_put_cstr(w, "mode", net_policy_mode(&b->policy));
	json_put_cstr(w, "since", since);
	json_put_int(w, "names", (int64_t)learn_names(learned));
	json_put_int(w, "addresses", (int64_t)learn_addresses(learned));
	json_put_bool(w, "complete", learn_is_complete(learned));
	json_write_key(w, "policy");
	net_policy_write(&p, w);
	json_write_object_end(w);
}

static void get_suggestion(struct http_exchange *x, void *app)
{
	const struct api_target *t = app;
	osb_cleanup(buf_done) struct buf out = BUF_INIT(ANSWER_MAX);
	uint64_t many = LEARN_MANY;
	struct json_writer w;

	if (!read_number(x, "wildcards", INT64_MAX, &many))
		return;
	if (!decisions_learned(t->box->decisions)) {
		api_reply_text(x, 409,
			       "nothing was learned: set the policy's mode to learn, and "
			       "let the sandbox do its work");
		return;
	}
	json_writer_init(&w, &out);
	write_suggestion(&w, t->box, many);
	if (json_writer_end(&w) < 0)
		api_reply_text(x, 500, "the answer is too large");
	else
		api_reply_json(x, &out);
}

const struct route api_event_routes[] = {
	{"GET", "/policy/events", get_events, 0},
	{"GET", "/policy/suggestion", get_suggestion, 0},
	{NULL, NULL, NULL, 0},
};
