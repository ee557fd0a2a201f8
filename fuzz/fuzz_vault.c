/*
 * A vault that is taken can be kept and brought back, shows none of its secrets, and leaves none in
 * what it redacts.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/strv.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "policy/vault.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void write(const struct vault *v, void (*fn)(const struct vault *, struct json_writer *),
		  struct buf *out)
{
	struct json_writer w;

	json_writer_init(&w, out);
	fn(v, &w);
	must(json_writer_end(&w) == 0);
}

static void use(const struct vault *v)
{
	struct vault_request q = {true, VIEW("GET"), VIEW("a.example.com"), VIEW("/v1/{KEY}")};
	osb_cleanup(buf_done) struct buf out = BUF_INIT(16u << 20), again = BUF_INIT(16u << 20);
	const struct vault_binding *b = NULL;
	struct err e = ERR_NONE;

	if (vault_match(v, &q, &b) != VAULT_BOUND)
		return;
	(void)!vault_rewrite_target(v, b, &q, VIEW("/v1/{KEY}?a={KEY}"), &out, &e);
	(void)!vault_rewrite_header(b, VIEW("X-A"), VIEW("{KEY}"), &out);
	for (int kind = VAULT_BODY_TEXT; kind <= VAULT_BODY_FORM; kind++)
		must(vault_rewrite_body(b, (enum vault_body)kind, VIEW("{KEY} {KEY"), &out) == 0);
	for (size_t i = 0; i < vault_headers(b); i++) {
		struct view value = vault_header_value(b, i);

		buf_clear(&again);
		must(vault_redact(v, value, &again) == 1);
		must(view_is(buf_view(&again), VAULT_REDACTED));
	}
}

/* What is kept of the hosts has all that are bound. */
static void check_hosts(const struct vault *v)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(16u << 20);
	osb_cleanup(strv_done) struct strv hosts = STRV_INIT;
	osb_cleanup(json_freep) struct json *list = NULL;
	struct err e = ERR_NONE;

	write(v, vault_hosts_write, &text);
	must(json_parse(buf_view(&text), 0, &list, &e) == 0);
	must(vault_hosts_read(list, &hosts, &e) == 0);
	must(vault_hosts_have(&hosts, VIEW("a.example.com")) ==
	     vault_binds(v, VIEW("a.example.com")));
	for (size_t i = 0; i < hosts.len; i++)
		if (hosts.v[i][0] != '*')
			must(vault_binds(v, view_of(hosts.v[i])));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	osb_cleanup(buf_done) struct buf one = BUF_INIT(64u << 20), two = BUF_INIT(64u << 20);
	osb_cleanup(json_freep) struct json *doc = NULL, *kept = NULL;
	osb_cleanup(vault_freep) struct vault *v = NULL, *w = NULL, *next = NULL;
	struct err e = ERR_NONE;

	if (json_parse(view_mem(data, size), 0, &doc, &e) < 0 ||
	    vault_new(doc, NULL, 0, &v, &e) < 0)
		return 0;
	use(v);
	write(v, vault_write_document, &one);
	must(json_parse(buf_view(&one), 0, &kept, &e) == 0);
	must(vault_restore(kept, &w, &e) == 0);
	write(w, vault_write_document, &two);
	must(view_eq(buf_view(&one), buf_view(&two)));
	buf_clear(&one);
	write(v, vault_write_state, &one);
	check_hosts(v);
	/* The same document as a patch: refused or not, never half. */
	(void)!vault_patch(v, doc, NULL, 0, &next, &e);
	return 0;
}
