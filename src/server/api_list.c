/*
 * server/api_list.c - GET /sandboxes: filters and pages.
 */
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "codec/json_writer.h"
#include "codec/url.h"
#include "net/http_server.h"
#include "server/app.h"
#include "server/encode.h"
#include "server/exchange.h"
#include "server/failure.h"
#include "server/request_fields.h"
#include "server/routes.h"
#include "server/sandboxes.h"

#define PAGE_SIZE_DEFAULT 20
#define PAGE_SIZE_MAX	  200
#define LABELS_MAX	  64

struct label {
	struct view key, value;
};

struct filter {
	unsigned states; /* bit per state; 0 = all */
	bool no_state;	 /* only names of states that do not exist */
	struct label labels[LABELS_MAX];
	size_t labels_n;
	uint64_t page, page_size;
};

static void add_state(struct filter *q, struct view name)
{
	for (int i = 0; i < SANDBOX_STATES_; i++) {
		if (view_iis(name, sandbox_state_name((enum sandbox_state)i))) {
			q->states |= 1u << i;
			return;
		}
	}
	q->no_state = true;
}

/* "k=v&k2=v2", form-encoded once more inside the query. */
static int add_labels(struct arena *a, struct view text, struct filter *q, struct failure *f)
{
	struct view pair, key, value;

	while (view_split(&text, '&', &pair)) {
		size_t eq = view_find(pair, '=');

		if (eq == pair.len || q->labels_n == LABELS_MAX ||
		    url_decode(a, view_first(pair, eq), URL_FORM, &key) < 0 ||
		    url_decode(a, view_skip(pair, eq + 1), URL_FORM, &value) < 0)
			return failure_set(
				f, 400, "INVALID_METADATA_FORMAT",
				"metadata must be a list of key=value pairs joined by '&'");
		q->labels[q->labels_n++] = (struct label){key, value};
	}
	return 0;
}

static int add_number(const char *name, struct view text, uint64_t max, uint64_t *ret,
		      struct failure *f)
{
	if (num_parse_u64(text, ret) && *ret >= 1 && *ret <= max)
		return 0;
	if (max == UINT32_MAX)
		return failure_set(f, 422, REQUEST_CODE, "%s must be a whole number from 1", name);
	return failure_set(f, 422, REQUEST_CODE, "%s must be a whole number from 1 to %llu", name,
			   (unsigned long long)max);
}

static int read_filter(struct http_exchange *x, struct filter *q, struct failure *f)
{
	struct view rest = http_query(x), name, value;
	struct arena *a = http_arena(x);
	int r;

	*q = (struct filter){.page = 1, .page_size = PAGE_SIZE_DEFAULT};
	while ((r = url_query_next(a, &rest, &name, &value)) > 0) {
		int bad = 0;

		if (view_is(name, "state"))
			add_state(q, value);
		else if (view_is(name, "metadata") && q->labels_n == 0) /* only the first is read */
			bad = add_labels(a, value, q, f);
		else if (view_is(name, "page"))
			bad = add_number("page", value, UINT32_MAX, &q->page, f);
		else if (view_is(name, "pageSize"))
			bad = add_number("pageSize", value, PAGE_SIZE_MAX, &q->page_size, f);
		if (bad < 0)
			return -1;
	}
	return r < 0 ? failure_set(f, 422, REQUEST_CODE, "the query is malformed") : 0;
}

static bool matches(const struct filter *q, const struct sandbox *b)
{
	if ((q->states || q->no_state) && !(q->states >> b->state & 1))
		return false;
	for (size_t i = 0; i < q->labels_n; i++) {
		bool found = false;

		for (size_t j = 0; j < b->spec.metadata.n && !found; j++)
			found = view_is(q->labels[i].key, b->spec.metadata.v[j].name) &&
				view_is(q->labels[i].value, b->spec.metadata.v[j].value);
		if (!found)
			return false;
	}
	return true;
}

struct listing {
	struct sandboxes *sandboxes;
	const struct filter *filter;
};

static void write_page(struct json_writer *w, void *arg)
{
	const struct listing *l = arg;
	const struct filter *q = l->filter;
	uint64_t first = (q->page - 1) * q->page_size, total = 0, pages;
	struct sandbox *b = NULL;

	json_write_object(w);
	json_write_key(w, "items");
	json_write_array(w);
	while ((b = sandboxes_next(l->sandboxes, b))) {
		if (!matches(q, b))
			continue;
		if (total >= first && total - first < q->page_size)
			encode_sandbox(w, b);
		total++;
	}
	json_write_array_end(w);
	pages = (total + q->page_size - 1) / q->page_size;
	json_write_key(w, "pagination");
	json_write_object(w);
	json_put_int(w, "page", (int64_t)q->page);
	json_put_int(w, "pageSize", (int64_t)q->page_size);
	json_put_int(w, "totalItems", (int64_t)total);
	json_put_int(w, "totalPages", (int64_t)pages);
	json_put_bool(w, "hasNextPage", q->page < pages);
	json_write_object_end(w);
	json_write_object_end(w);
}

static void list_sandboxes(struct http_exchange *x, void *arg)
{
	struct app *app = arg;
	struct failure f = FAILURE_NONE;
	struct filter q;
	struct listing l = {.sandboxes = app->sandboxes, .filter = &q};

	if (read_filter(x, &q, &f) < 0)
		failure_reply(x, &f);
	else
		exchange_reply_json(x, 200, write_page, &l);
}

const struct route api_list_routes[] = {
	{"GET", "/sandboxes", list_sandboxes, 0},
	{NULL, NULL, NULL, 0},
};
