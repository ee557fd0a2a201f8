/*
 * server/list_filter.c - filters: any of the states, all of the labels.
 */
#include "server/list_filter.h"

#include "base/arena.h"
#include "codec/url.h"
#include "server/failure.h"
#include "server/request_fields.h"
#include "server/sandbox.h"

static void add_state(struct list_filter *q, struct view name)
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
static int add_labels(struct arena *a, struct view text, struct list_filter *q, struct failure *f)
{
	struct view pair, key, value;

	while (view_split(&text, '&', &pair)) {
		size_t eq = view_find(pair, '=');

		if (eq == pair.len || q->labels_n == LIST_FILTER_LABELS_MAX ||
		    url_decode(a, view_first(pair, eq), URL_FORM, &key) < 0 ||
		    url_decode(a, view_skip(pair, eq + 1), URL_FORM, &value) < 0)
			return failure_set(f, 400, "INVALID_METADATA_FORMAT",
					   "metadata must be a list of at most %d key=value pairs "
					   "joined by '&'",
					   LIST_FILTER_LABELS_MAX);
		q->labels[q->labels_n++] = (struct list_label){key, value};
	}
	return 0;
}

int list_filter_read(struct arena *a, struct view query, struct list_filter *ret, struct failure *f)
{
	struct list_filter q = {.page = PAGE_FIRST};
	bool has_metadata = false;
	struct view name, value;
	int r;

	while ((r = url_query_next(a, &query, &name, &value)) > 0) {
		int bad = 0;

		if (view_is(name, "state")) {
			add_state(&q, value);
		} else if (view_is(name, "metadata") && !has_metadata) { /* only the first counts */
			has_metadata = true;
			bad = add_labels(a, value, &q, f);
		} else {
			bad = page_parameter(&q.page, name, value, f);
		}
		if (bad < 0)
			return -1;
	}
	if (r < 0)
		return failure_set(f, 422, REQUEST_CODE, "the query is malformed");
	*ret = q;
	return 0;
}

static bool has_label(const struct sandbox *b, const struct list_label *label)
{
	for (size_t i = 0; i < b->spec.metadata.n; i++)
		if (view_is(label->key, b->spec.metadata.v[i].name))
			return view_is(label->value, b->spec.metadata.v[i].value);
	return false;
}

bool list_filter_matches(const struct list_filter *q, const struct sandbox *b)
{
	if ((q->states || q->no_state) && !(q->states >> b->state & 1))
		return false;
	for (size_t i = 0; i < q->labels_n; i++)
		if (!has_label(b, &q->labels[i]))
			return false;
	return true;
}
