/*
 * A policy that is understood is written as one that means the same, and survives a merge with
 * itself.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "policy/net_policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* As an operator's list: what is taken is marked, and what is copied is the same. */
static void read_as_list(struct view text)
{
	osb_cleanup(net_policy_done) struct net_policy p = NET_POLICY_NONE, copy = NET_POLICY_NONE;
	size_t bad;

	net_policy_add_lines(&p, text, true, 1000, &bad);
	must(p.n <= 1000 && bad <= text.len);
	net_policy_append(&copy, &p);
	net_policy_index(&copy);
	for (size_t i = 0; i < p.n; i++) {
		must(p.rules[i].always && p.rules[i].allow);
		if (p.rules[i].kind == NET_HOST)
			must(net_policy_find_name(&copy, p.rules[i].name) != NULL);
	}
}

/* As the body of a PATCH and of a DELETE. */
static void change_by(const struct json *v)
{
	osb_cleanup(net_policy_done) struct net_policy p = {.mode = NET_LEARN};
	struct err e = ERR_NONE;
	size_t n;

	must(net_policy_add(&p, true, VIEW("example.com")));
	if (net_policy_merge(&p, v, 50, &e) == 0)
		must(p.n <= 50 && p.mode == NET_LEARN);
	else
		must(p.n == 1);
	if (net_policy_remove(&p, v, &n, &e) == 0)
		must(n + p.n >= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	osb_cleanup(net_policy_done) struct net_policy p = NET_POLICY_NONE, again = NET_POLICY_NONE;
	osb_cleanup(json_freep) struct json *v = NULL, *w = NULL;
	osb_cleanup(buf_done) struct buf text = BUF_INIT(16u << 20);
	struct json_writer writer;
	struct err e = ERR_NONE;

	read_as_list(view_mem(data, size));
	if (json_parse(view_mem(data, size), 0, &v, &e) < 0)
		return 0;
	if (json_kind(v) == JSON_ARRAY)
		change_by(v);
	if (net_policy_from_json(v, 0, &p, &e) < 0)
		return 0;
	json_writer_init(&writer, &text);
	net_policy_write(&p, &writer);
	must(json_writer_end(&writer) == 0);
	must(json_parse(buf_view(&text), 0, &w, &e) == 0);
	must(net_policy_from_json(w, p.n, &again, &e) == 0);
	must(again.n == p.n && again.default_allow == p.default_allow && again.mode == p.mode);
	for (size_t i = 0; i < p.n; i++)
		must(strcmp(again.rules[i].key, p.rules[i].key) == 0);
	net_policy_index(&again);
	for (size_t i = 0; i < p.n; i++)
		if (p.rules[i].name)
			must((net_policy_find_name(&p, p.rules[i].name) == NULL) ==
			     (net_policy_find_name(&again, p.rules[i].name) == NULL));
	must(net_policy_merge(&again, json_get(w, "egress"), 0, &e) == 0 && again.n <= p.n);
	return 0;
}
