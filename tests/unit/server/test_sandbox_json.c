/*
 * test_sandbox_json.c - specs survive the store, and execd gets what it needs.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "codec/json.h"
#include "server/sandbox.h"

static void add_hook(struct sandbox_hook *h, const char *name)
{
	h->name = name ? mem_strdup(name) : NULL;
	h->schedule = name ? mem_strdup("@every 5s") : NULL;
	strv_add(&h->command, "echo");
	strv_add(&h->command, "a \"b\"");
	h->timeout_s = 9;
}

static struct sandbox_spec full_spec(void)
{
	struct sandbox_spec s = {.has_metadata = true, .renew_extend_s = 600};

	s.image_uri = mem_strdup("opensandbox/code-interpreter:v1");
	s.reference = mem_strdup("docker.io/library/python:3.11");
	s.root.image = mem_strdup("sha256:1");
	s.root.layers = mem_new_array(uint64_t, 2);
	s.root.layers[0] = 7;
	s.root.layers[1] = 4;
	s.root.layers_n = 2;
	s.root.user = mem_strdup("app:app");
	s.root.cwd = mem_strdup("/srv");
	pairs_add(&s.root.env, VIEW("PATH"), VIEW("/image/bin"));
	pairs_add(&s.root.env, VIEW("A"), VIEW("the image's"));
	strv_add(&s.root.start, "serve");
	s.network.policy = mem_strdup("{\"defaultAction\":\"deny\",\"egress\":[]}");
	s.network.token = mem_strdup("n-_");
	s.network.credential_proxy = true;
	pairs_add(&s.network.settings, VIEW("OPENSANDBOX_EGRESS_LOG_LEVEL"), VIEW("debug"));
	strv_add(&s.network.vault_hosts, "*.example.org");
	strv_add(&s.entrypoint, "sh");
	strv_add(&s.entrypoint, "");
	pairs_add(&s.env, VIEW("A"), VIEW("line\nline"));
	pairs_add(&s.env, VIEW("API_TOKEN"), VIEW("\x01\x7f"));
	pairs_add(&s.metadata, VIEW("k"), VIEW("v"));
	pairs_add(&s.limits, VIEW("cpu"), VIEW("1"));
	pairs_add(&s.requests, VIEW("memory"), VIEW("1Gi"));
	pairs_add(&s.extensions, VIEW("x"), VIEW("y"));
	s.code_pool = mem_strdup("python:1");
	s.os = mem_strdup("linux");
	s.arch = mem_strdup("amd64");
	s.runtime_limits = (struct runtime_limits){
		.memory_bytes = UINT64_C(1) << 40,
		.memory_low_bytes = 2,
		.cpu_milli = 3,
		.cpu_weight_milli = 4,
		.pids = 5,
	};
	s.pre_start = mem_new(struct sandbox_hook);
	add_hook(s.pre_start, NULL);
	s.periodic = mem_new_array(struct sandbox_hook, 2);
	s.periodic_n = 2;
	add_hook(&s.periodic[0], "one");
	add_hook(&s.periodic[1], "two");
	return s;
}

static void reads_back_what_it_stored(void **state)
{
	osb_cleanup(mem_freep) char *text = NULL;
	osb_cleanup(mem_freep) char *text_again = NULL;
	struct sandbox_spec s = full_spec(), again;
	struct err e = ERR_NONE;

	(void)state;
	assert_int_equal(sandbox_spec_format(&s, &text, &e), 0);
	assert_int_equal(sandbox_spec_parse(view_of(text), &again, &e), 0);
	assert_int_equal(sandbox_spec_format(&again, &text_again, &e), 0);
	assert_string_equal(text, text_again);
	assert_string_equal(pairs_get(&again.env, "A"), "line\nline");
	assert_true(again.has_metadata);
	assert_int_equal(again.runtime_limits.memory_bytes, UINT64_C(1) << 40);
	assert_int_equal(again.renew_extend_s, 600);
	assert_string_equal(again.periodic[1].name, "two");
	assert_string_equal(again.network.policy, s.network.policy);
	assert_string_equal(again.network.token, "n-_");
	assert_true(again.network.credential_proxy);
	assert_int_equal(again.network.settings.n, 1);
	assert_int_equal(again.network.vault_hosts.len, 1);
	assert_string_equal(again.network.vault_hosts.v[0], "*.example.org");
	assert_null(again.pre_start->name);
	sandbox_spec_done(&s);
	sandbox_spec_done(&again);
}

static void refuses_texts_that_are_no_spec(void **state)
{
	static const char *const texts[] = {"", "{", "[]", "{}", "{\"image\":1}", "null"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct sandbox_spec s;
		struct err e = ERR_NONE;

		assert_true(sandbox_spec_parse(view_of(texts[i]), &s, &e) < 0);
		assert_true(e.msg[0]);
	}
}

static void takes_what_is_missing_in_a_stored_text_as_empty(void **state)
{
	struct sandbox_spec s;
	struct err e = ERR_NONE;

	(void)state;
	assert_int_equal(sandbox_spec_parse(VIEW("{\"image\":\"host\"}"), &s, &e), 0);
	assert_int_equal(s.entrypoint.len + s.env.n + s.metadata.n + s.periodic_n, 0);
	assert_null(s.os);
	assert_null(s.pre_start);
	sandbox_spec_done(&s);
}

static void tells_execd_the_entrypoint_environment_token_and_hooks(void **state)
{
	osb_cleanup(mem_freep) char *text = NULL;
	osb_cleanup(json_freep) struct json *v = NULL;
	const struct json *lifecycle;
	struct sandbox_spec s = full_spec();
	struct err e = ERR_NONE;
	struct view word;

	(void)state;
	assert_int_equal(sandbox_start_file(&s, "t-_", VIEW("PEM\n"), &text, &e), 0);
	assert_int_equal(json_parse(view_of(text), 0, &v, &e), 0);
	assert_int_equal(json_len(json_get(v, "entrypoint")), 2);
	/* The image's variables, where the request does not set them. */
	assert_int_equal(json_len(json_get(v, "env")), 3);
	assert_true(json_str(json_get(json_get(v, "env"), "A"), &word) &&
		    view_is(word, "line\nline"));
	assert_true(json_str(json_get(json_get(v, "env"), "PATH"), &word) &&
		    view_is(word, "/image/bin"));
	assert_true(json_str(json_get(v, "user"), &word) && view_is(word, "app:app"));
	assert_true(json_str(json_get(v, "authority"), &word) && view_is(word, "PEM\n"));
	/* What the filter is told is none of its business. */
	assert_null(json_get(v, "network"));
	assert_true(json_str(json_get(v, "cwd"), &word) && view_is(word, "/srv"));
	assert_true(json_str(json_get(v, "token"), &word) && view_is(word, "t-_"));
	assert_true(json_str(json_get(v, "codePool"), &word) && view_is(word, "python:1"));
	lifecycle = json_get(v, "lifecycle");
	assert_int_equal(json_len(json_get(lifecycle, "periodic")), 2);
	assert_non_null(json_get(lifecycle, "preStart"));
	/* What is the server's own stays with it. */
	assert_null(json_get(v, "metadata"));
	assert_null(json_get(v, "limits"));
	sandbox_spec_done(&s);
}

static void tells_no_token_where_there_is_none(void **state)
{
	osb_cleanup(mem_freep) char *text = NULL;
	struct sandbox_spec s = {0};
	struct err e = ERR_NONE;

	(void)state;
	assert_int_equal(sandbox_start_file(&s, NULL, VIEW_NONE, &text, &e), 0);
	assert_null(strstr(text, "token"));
	assert_null(strstr(text, "lifecycle"));
}

static void keeps_names_and_values_in_order(void **state)
{
	struct pairs p = {0};

	(void)state;
	pairs_set(&p, VIEW("a"), VIEW("1"));
	pairs_set(&p, VIEW("b"), VIEW("2"));
	pairs_set(&p, VIEW("c"), VIEW("3"));
	pairs_set(&p, VIEW("a"), VIEW("4"));
	pairs_remove(&p, VIEW("b"));
	pairs_remove(&p, VIEW("nobody"));
	assert_int_equal(p.n, 2);
	assert_string_equal(p.v[0].name, "a");
	assert_string_equal(p.v[0].value, "4");
	assert_string_equal(p.v[1].name, "c");
	pairs_remove(&p, VIEW("c"));
	pairs_remove(&p, VIEW("a"));
	assert_int_equal(p.n, 0);
	pairs_done(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_back_what_it_stored),
		cmocka_unit_test(refuses_texts_that_are_no_spec),
		cmocka_unit_test(takes_what_is_missing_in_a_stored_text_as_empty),
		cmocka_unit_test(tells_execd_the_entrypoint_environment_token_and_hooks),
		cmocka_unit_test(tells_no_token_where_there_is_none),
		cmocka_unit_test(keeps_names_and_values_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
