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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	osb_cleanup(net_policy_done) struct net_policy p = NET_POLICY_NONE, again = NET_POLICY_NONE;
	osb_cleanup(json_freep) struct json *v = NULL, *w = NULL;
	osb_cleanup(buf_done) struct buf text = BUF_INIT(16u << 20);
	struct json_writer writer;
	struct err e = ERR_NONE;

	if (json_parse(view_mem(data, size), 0, &v, &e) < 0 ||
	    net_policy_from_json(v, 0, &p, &e) < 0)
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
