/*
 * test_request_create.c - bodies of create requests: what is accepted, and how the rest is refused.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "server/config.h"
#include "server/failure.h"
#include "server/request_create.h"
#include "server/sandbox.h"

static char pattern[] = "opensandbox/code-interpreter:*", host[] = "host";
static char egress_mode[] = "dns+nft";
static struct config_alias alias = {.pattern = pattern, .image = host};
static const struct config config = {
	.max_sandbox_timeout_seconds = 7200,
	.aliases = &alias,
	.aliases_n = 1,
	.pids_limit = 99,
	.network = true,
	.egress_mode = egress_mode,
	.egress_max_rules = 3,
};

#define IMAGE  "\"image\":{\"uri\":\"host\"}"
#define ENTRY  "\"entrypoint\":[\"sleep\",\"9\"]"
#define LIMITS "\"resourceLimits\":{\"cpu\":\"1\",\"memory\":\"64Mi\"}"

#define RULE "{\"action\":\"allow\",\"target\":\"a.example\"}"

/* A good request with one field changed: `change` stands behind the good ones. */
#define WITH(change) "{" IMAGE "," ENTRY "," LIMITS "," change "}"

static int decode(const char *body, struct sandbox_spec *spec, int64_t *timeout_s,
		  struct failure *f)
{
	*f = FAILURE_NONE;
	*timeout_s = -1;
	return request_create(view_of(body), &config, spec, timeout_s, f);
}

static const struct {
	const char *body;
	int status;
	const char *code, *names;
} wrong[] = {
	{"", 422, "SANDBOX::INVALID_PARAMETER", "JSON"},
	{"{", 422, "SANDBOX::INVALID_PARAMETER", "JSON"},
	{"[]", 422, "SANDBOX::INVALID_PARAMETER", "object"},
	{"null", 422, "SANDBOX::INVALID_PARAMETER", "object"},
	{"{}", 422, "SANDBOX::INVALID_PARAMETER", "image"},
	{"{" ENTRY "," LIMITS "}", 422, "SANDBOX::INVALID_PARAMETER", "image"},
	{"{\"image\":\"host\"," ENTRY "," LIMITS "}", 422, "SANDBOX::INVALID_PARAMETER", "image"},
	{"{\"image\":{}," ENTRY "," LIMITS "}", 422, "SANDBOX::INVALID_PARAMETER", "uri"},
	{"{\"image\":{\"uri\":1}," ENTRY "," LIMITS "}", 422, "SANDBOX::INVALID_PARAMETER", "uri"},
	{"{\"image\":{\"uri\":\"  \"}," ENTRY "," LIMITS "}", 422, "SANDBOX::INVALID_PARAMETER",
	 "image.uri"},
	{"{\"image\":{\"uri\":\"host\",\"auth\":{\"username\":\"u\"}}," ENTRY "," LIMITS "}", 422,
	 "SANDBOX::INVALID_PARAMETER", "password"},
	{"{\"image\":{\"uri\":\"host\",\"auth\":\"u\"}," ENTRY "," LIMITS "}", 422,
	 "SANDBOX::INVALID_PARAMETER", "auth"},
	{"{\"image\":{\"uri\":\"Alpine:3\"}," ENTRY "," LIMITS "}", 400,
	 "SANDBOX::INVALID_PARAMETER", "image.uri"},
	{WITH("\"snapshotId\":\"s\""), 422, "SANDBOX::INVALID_PARAMETER", "snapshotId"},
	{"{\"snapshotId\":5," LIMITS "}", 422, "SANDBOX::INVALID_PARAMETER", "snapshotId"},
	{"{\"snapshotId\":\"s\",\"entrypoint\":[]," LIMITS "}", 422, "SANDBOX::INVALID_PARAMETER",
	 "entrypoint"},
	{"{\"templateId\":\"t\"}", 501, "FSB::API_NOT_SUPPORTED", "templateId"},
	{"{" IMAGE "," LIMITS "}", 422, "SANDBOX::INVALID_PARAMETER", "entrypoint"},
	{"{" IMAGE "," LIMITS ",\"entrypoint\":[]}", 422, "SANDBOX::INVALID_PARAMETER",
	 "entrypoint"},
	{"{" IMAGE "," LIMITS ",\"entrypoint\":null}", 422, "SANDBOX::INVALID_PARAMETER",
	 "entrypoint"},
	{"{" IMAGE "," LIMITS ",\"entrypoint\":\"sleep 9\"}", 422, "SANDBOX::INVALID_PARAMETER",
	 "entrypoint"},
	{"{" IMAGE "," LIMITS ",\"entrypoint\":[\"a\",1]}", 422, "SANDBOX::INVALID_PARAMETER",
	 "entrypoint[1]"},
	{"{" IMAGE "," LIMITS ",\"entrypoint\":[\"a\\u0000b\"]}", 422, "SANDBOX::INVALID_PARAMETER",
	 "entrypoint[0]"},
	{"{" IMAGE "," LIMITS ",\"entrypoint\":[\"\"]}", 400, "DOCKER::INVALID_ENTRYPOINT",
	 "entrypoint"},
	{"{" IMAGE "," LIMITS ",\"entrypoint\":[\" \"]}", 400, "DOCKER::INVALID_ENTRYPOINT",
	 "entrypoint"},
	{"{" IMAGE "," LIMITS ",\"entrypoint\":[\"a 'b\"]}", 400, "DOCKER::INVALID_ENTRYPOINT",
	 "entrypoint"},
	{"{" IMAGE "," ENTRY "}", 422, "SANDBOX::INVALID_PARAMETER", "resourceLimits"},
	{"{" IMAGE "," ENTRY ",\"resourceLimits\":null}", 422, "SANDBOX::INVALID_PARAMETER",
	 "resourceLimits"},
	{"{" IMAGE "," ENTRY ",\"resourceLimits\":[]}", 422, "SANDBOX::INVALID_PARAMETER",
	 "resourceLimits"},
	{"{" IMAGE "," ENTRY ",\"resourceLimits\":{\"cpu\":1}}", 422, "SANDBOX::INVALID_PARAMETER",
	 "cpu"},
	{"{" IMAGE "," ENTRY ",\"resourceLimits\":{\"cpu\":\"lots\"}}", 400,
	 "SANDBOX::INVALID_PARAMETER", "resourceLimits.cpu"},
	{"{" IMAGE "," ENTRY ",\"resourceLimits\":{\"memory\":\"1.5Gi\"}}", 400,
	 "SANDBOX::INVALID_PARAMETER", "resourceLimits.memory"},
	{"{" IMAGE "," ENTRY ",\"resourceLimits\":{\"gpu\":\"1\"}}", 400,
	 "SANDBOX::INVALID_PARAMETER", "gpu"},
	{"{" IMAGE "," ENTRY ",\"resourceLimits\":{\"disk\":\"1Gi\"}}", 400,
	 "SANDBOX::INVALID_PARAMETER", "disk"},
	{WITH("\"resourceRequests\":{\"cpu\":\"2\"}"), 400, "SANDBOX::INVALID_PARAMETER",
	 "resourceRequests"},
	{WITH("\"resourceRequests\":{\"memory\":\"65Mi\"}"), 400, "SANDBOX::INVALID_PARAMETER",
	 "resourceRequests"},
	{WITH("\"timeout\":59"), 422, "SANDBOX::INVALID_PARAMETER", "timeout"},
	{WITH("\"timeout\":0"), 422, "SANDBOX::INVALID_PARAMETER", "timeout"},
	{WITH("\"timeout\":-1"), 422, "SANDBOX::INVALID_PARAMETER", "timeout"},
	{WITH("\"timeout\":\"60\""), 422, "SANDBOX::INVALID_PARAMETER", "timeout"},
	{WITH("\"timeout\":60.5"), 422, "SANDBOX::INVALID_PARAMETER", "timeout"},
	{WITH("\"timeout\":true"), 422, "SANDBOX::INVALID_PARAMETER", "timeout"},
	{WITH("\"timeout\":7201"), 400, "SANDBOX::INVALID_PARAMETER", "timeout"},
	{WITH("\"timeout\":9223372036854775807"), 400, "SANDBOX::INVALID_PARAMETER", "timeout"},
	{WITH("\"env\":[]"), 422, "SANDBOX::INVALID_PARAMETER", "env"},
	{WITH("\"env\":{\"A\":1}"), 422, "SANDBOX::INVALID_PARAMETER", "env"},
	{WITH("\"env\":{\"\":\"x\"}"), 422, "SANDBOX::INVALID_PARAMETER", "env"},
	{WITH("\"env\":{\"A=B\":\"x\"}"), 422, "SANDBOX::INVALID_PARAMETER", "A=B"},
	{WITH("\"env\":{\"A\":\"x\\u0000\"}"), 422, "SANDBOX::INVALID_PARAMETER", "env"},
	{WITH("\"env\":{\"OPENSANDBOX_LIFECYCLE\":\"x\"}"), 422, "SANDBOX::INVALID_PARAMETER",
	 "OPENSANDBOX_LIFECYCLE"},
	{WITH("\"metadata\":\"x\""), 422, "SANDBOX::INVALID_PARAMETER", "metadata"},
	{WITH("\"metadata\":{\"a\":1}"), 422, "SANDBOX::INVALID_PARAMETER", "metadata"},
	{WITH("\"metadata\":{\"a\":null}"), 422, "SANDBOX::INVALID_PARAMETER", "metadata"},
	{WITH("\"metadata\":{\"a b\":\"x\"}"), 400, "SANDBOX::INVALID_METADATA_LABEL", "a b"},
	{WITH("\"metadata\":{\"a\":\"x y\"}"), 400, "SANDBOX::INVALID_METADATA_LABEL", "metadata"},
	{WITH("\"metadata\":{\"opensandbox.io/a\":\"x\"}"), 400, "SANDBOX::INVALID_METADATA_LABEL",
	 "reserved"},
	{WITH("\"platform\":\"linux\""), 422, "SANDBOX::INVALID_PARAMETER", "platform"},
	{WITH("\"platform\":{\"os\":\"linux\"}"), 422, "SANDBOX::INVALID_PARAMETER", "arch"},
	{WITH("\"platform\":{\"os\":\"windows\",\"arch\":\"amd64\"}"), 400,
	 "SANDBOX::INVALID_PARAMETER", "platform.os"},
	{WITH("\"platform\":{\"os\":\"linux\",\"arch\":\"riscv\"}"), 400,
	 "SANDBOX::INVALID_PARAMETER", "platform.arch"},
	{WITH("\"extensions\":[]"), 422, "SANDBOX::INVALID_PARAMETER", "extensions"},
	{WITH("\"extensions\":{\"a\":{}}"), 422, "SANDBOX::INVALID_PARAMETER", "extensions"},
	{WITH("\"extensions\":{\"poolRef\":\"p\"}"), 400, "SANDBOX::UNSUPPORTED_POOL_REF",
	 "poolRef"},
	{WITH("\"extensions\":{\"access.renew.extend.seconds\":\"299\"}"), 400,
	 "SANDBOX::INVALID_PARAMETER", "access.renew.extend.seconds"},
	{WITH("\"extensions\":{\"access.renew.extend.seconds\":\"86401\"}"), 400,
	 "SANDBOX::INVALID_PARAMETER", "access.renew.extend.seconds"},
	{WITH("\"extensions\":{\"access.renew.extend.seconds\":\"many\"}"), 400,
	 "SANDBOX::INVALID_PARAMETER", "access.renew.extend.seconds"},
	{WITH("\"extensions\":{\"opensandbox.code.pool\":\"python:many\"}"), 400,
	 "SANDBOX::INVALID_PARAMETER", "opensandbox.code.pool"},
	{WITH("\"extensions\":{\"opensandbox.code.pool\":\"python:33\"}"), 400,
	 "SANDBOX::INVALID_PARAMETER", "opensandbox.code.pool"},
	{WITH("\"lifecycle\":[]"), 422, "SANDBOX::INVALID_PARAMETER", "lifecycle"},
	{WITH("\"lifecycle\":{\"preStart\":[]}"), 422, "SANDBOX::INVALID_PARAMETER", "preStart"},
	{WITH("\"lifecycle\":{\"preStart\":{}}"), 422, "SANDBOX::INVALID_PARAMETER", "command"},
	{WITH("\"lifecycle\":{\"preStart\":{\"command\":[\"a\"],\"timeoutSeconds\":0}}"), 422,
	 "SANDBOX::INVALID_PARAMETER", "timeoutSeconds"},
	{WITH("\"lifecycle\":{\"periodic\":[1]}"), 422, "SANDBOX::INVALID_PARAMETER",
	 "lifecycle.periodic[0]"},
	{WITH("\"lifecycle\":{\"periodic\":[{\"command\":[\"a\"],\"schedule\":\"@every "
	      "5s\"}]}"),
	 422, "SANDBOX::INVALID_PARAMETER", "lifecycle.periodic[0].name"},
	{WITH("\"lifecycle\":{\"periodic\":[{\"name\":\"n\",\"command\":[\"a\"],"
	      "\"schedule\":\"sometimes\"}]}"),
	 422, "SANDBOX::INVALID_PARAMETER", "schedule"},
	{WITH("\"networkPolicy\":{\"egress\":null}"), 422, "SANDBOX::INVALID_PARAMETER",
	 "networkPolicy.egress"},
	{WITH("\"networkPolicy\":{\"egress\":[1]}"), 422, "SANDBOX::INVALID_PARAMETER",
	 "networkPolicy.egress"},
	{WITH("\"networkPolicy\":{\"egress\":[{\"target\":\"a.b\"}]}"), 422,
	 "SANDBOX::INVALID_PARAMETER", "action"},
	{WITH("\"networkPolicy\":{\"egress\":[{\"action\":\"allow\",\"target\":\"\"}]}"), 422,
	 "SANDBOX::INVALID_PARAMETER", "target"},
	{WITH("\"networkPolicy\":{\"egress\":[{\"action\":\"x\",\"target\":\"a.b\"}]}"), 400,
	 "SANDBOX::INVALID_PARAMETER", "rule 0: action"},
	{WITH("\"networkPolicy\":{\"mode\":\"sleep\"}"), 400, "SANDBOX::INVALID_PARAMETER",
	 "networkPolicy: mode"},
	{WITH("\"networkPolicy\":{\"egress\":[" RULE "," RULE "," RULE "," RULE "]}"), 400,
	 "SANDBOX::INVALID_PARAMETER", "too many"},
	{WITH("\"networkPolicy\":{},\"env\":{\"OPENSANDBOX_EGRESS_POLICY_FILE\":\"/etc/passwd\"}"),
	 400, "SANDBOX::INVALID_PARAMETER", "POLICY_FILE"},
	{WITH("\"networkPolicy\":1"), 422, "SANDBOX::INVALID_PARAMETER", "networkPolicy"},
	{WITH("\"credentialProxy\":{\"enabled\":true}"), 422, "SANDBOX::INVALID_PARAMETER",
	 "credentialProxy"},
	{WITH("\"extensions\":{\"access.resume.on.request\":\"perhaps\"}"), 400,
	 "SANDBOX::INVALID_PARAMETER", "access.resume.on.request"},
	{WITH("\"secureAccess\":\"yes\""), 422, "SANDBOX::INVALID_PARAMETER", "secureAccess"},
	{WITH("\"volumes\":[{}]"), 422, "VOLUME::INVALID_NAME", "volumes"},
	{WITH("\"volumes\":{}"), 422, "SANDBOX::INVALID_PARAMETER", "volumes"},
};

static void refuses_what_is_wrong_and_names_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct sandbox_spec spec;
		struct failure f;
		int64_t timeout_s;
		int r = decode(wrong[i].body, &spec, &timeout_s, &f);

		if (r == 0 || f.status != wrong[i].status || strcmp(f.code, wrong[i].code) != 0 ||
		    !strstr(f.message, wrong[i].names))
			fail_msg("%s\n-> %d %s %s, but %d %s naming '%s' was expected",
				 wrong[i].body, f.status, f.code ? f.code : "", f.message,
				 wrong[i].status, wrong[i].code, wrong[i].names);
	}
}

static void takes_everything_that_there_is(void **state)
{
	static const char body[] =
		"{\"image\":{\"uri\":\" opensandbox/code-interpreter:v2 \",\"auth\":null},"
		"\"entrypoint\":[\"a\",\"b c\"],\"timeout\":7200,"
		"\"resourceLimits\":{\"cpu\":\"1500m\",\"memory\":\"1Gi\"},"
		"\"resourceRequests\":{\"cpu\":\"0.5\",\"memory\":\"512Mi\"},"
		"\"env\":{\"A\":\"1\",\"GONE\":null,\"B\":\"\"},\"metadata\":{\"x/y\":\"z\"},"
		"\"platform\":{\"os\":\" LINUX \",\"arch\":\"amd64\"},"
		"\"extensions\":{\"access.renew.extend.seconds\":\" 600 \",\"other\":\"kept\","
		"\"opensandbox.code.pool\":\"python:2\"},"
		"\"lifecycle\":{\"preStart\":{\"command\":[\"p\"]},\"periodic\":[{\"name\":\"n\","
		"\"schedule\":\"@every 5s\",\"command\":[\"q\"],\"timeoutSeconds\":7}]},"
		"\"volumes\":[],\"secureAccess\":false,\"credentialProxy\":{\"enabled\":false},"
		"\"whatever\":{\"x\":[1]}}";
	struct sandbox_spec spec;
	struct failure f;
	int64_t timeout_s;

	(void)state;
#if !defined(__x86_64__)
	skip();
#endif
	assert_int_equal(decode(body, &spec, &timeout_s, &f), 0);
	assert_int_equal(timeout_s, 7200);
	assert_string_equal(spec.image_uri, "opensandbox/code-interpreter:v2");
	assert_string_equal(spec.root.image, "host");
	assert_int_equal(spec.entrypoint.len, 2);
	assert_string_equal(spec.entrypoint.v[1], "b c");
	assert_int_equal(spec.runtime_limits.cpu_milli, 1500);
	assert_int_equal(spec.runtime_limits.memory_bytes, 1 << 30);
	assert_int_equal(spec.runtime_limits.cpu_weight_milli, 500);
	assert_int_equal(spec.runtime_limits.memory_low_bytes, 1 << 29);
	assert_int_equal(spec.runtime_limits.pids, 99);
	assert_int_equal(spec.env.n, 2);
	assert_string_equal(pairs_get(&spec.env, "B"), "");
	assert_null(pairs_get(&spec.env, "GONE"));
	assert_true(spec.has_metadata);
	assert_string_equal(spec.os, "linux");
	assert_string_equal(spec.arch, "amd64");
	assert_int_equal(spec.renew_extend_s, 600);
	assert_string_equal(pairs_get(&spec.extensions, "other"), "kept");
	assert_string_equal(spec.code_pool, "python:2");
	assert_int_equal(spec.pre_start->timeout_s, 60);
	assert_int_equal(spec.periodic_n, 1);
	assert_int_equal(spec.periodic[0].timeout_s, 7);
	sandbox_spec_done(&spec);
}

static void takes_null_for_absent(void **state)
{
	static const char *const fields[] = {
		"timeout",	    "env",	 "metadata",	  "platform",
		"extensions",	    "lifecycle", "snapshotId",	  "templateId",
		"resourceRequests", "volumes",	 "networkPolicy", "secureAccess",
		"credentialProxy",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		osb_cleanup(mem_freep) char *body =
			mem_printf("{" IMAGE "," ENTRY "," LIMITS ",\"%s\":null}", fields[i]);
		struct sandbox_spec spec;
		struct failure f;
		int64_t timeout_s;

		if (decode(body, &spec, &timeout_s, &f) < 0)
			fail_msg("%s: %s", fields[i], f.message);
		assert_int_equal(timeout_s, 0);
		assert_false(spec.has_metadata);
		sandbox_spec_done(&spec);
	}
}

static void splits_a_command_line_as_a_shell_would(void **state)
{
	static const struct {
		const char *json;
		size_t n;
		const char *last;
	} cases[] = {
		{"[\"tail -f /dev/null\"]", 3, "/dev/null"},
		{"[\"sh -c 'sleep 1; echo \\\"x\\\"'\"]", 3, "sleep 1; echo \"x\""},
		{"[\"sleep\"]", 1, "sleep"},
		{"[\"with blank\",\"x\"]", 2, "x"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		osb_cleanup(mem_freep) char *body =
			mem_printf("{" IMAGE "," LIMITS ",\"entrypoint\":%s}", cases[i].json);
		struct sandbox_spec spec;
		struct failure f;
		int64_t timeout_s;

		assert_int_equal(decode(body, &spec, &timeout_s, &f), 0);
		assert_int_equal(spec.entrypoint.len, cases[i].n);
		assert_string_equal(spec.entrypoint.v[cases[i].n - 1], cases[i].last);
		sandbox_spec_done(&spec);
	}
}

static void remembers_that_metadata_was_given_empty(void **state)
{
	struct sandbox_spec spec;
	struct failure f;
	int64_t timeout_s;

	(void)state;
	assert_int_equal(decode(WITH("\"metadata\":{}"), &spec, &timeout_s, &f), 0);
	assert_true(spec.has_metadata);
	assert_int_equal(spec.metadata.n, 0);
	sandbox_spec_done(&spec);
}

static void keeps_a_policy_in_one_form(void **state)
{
	struct sandbox_spec spec;
	struct failure f;
	int64_t timeout_s;

	(void)state;
	if (decode(WITH("\"networkPolicy\":{\"egress\":[" RULE "]},"
			"\"credentialProxy\":{\"enabled\":true},"
			"\"env\":{\"A\":\"b\",\"OPENSANDBOX_EGRESS_DENY_WEBHOOK\":\"http://x\","
			"\"OPENSANDBOX_EGRESS_TOKEN\":\"mine\"}"),
		   &spec, &timeout_s, &f) < 0)
		fail_msg("%s", f.message);
	assert_string_equal(spec.network.policy,
			    "{\"defaultAction\":\"deny\",\"egress\":[" RULE "]}");
	assert_true(spec.network.credential_proxy);
	assert_null(spec.network.token);
	assert_int_equal(spec.network.settings.n, 1);
	assert_string_equal(pairs_get(&spec.network.settings, "OPENSANDBOX_EGRESS_DENY_WEBHOOK"),
			    "http://x");
	assert_int_equal(spec.env.n, 3);
	sandbox_spec_done(&spec);

	if (decode(WITH("\"networkPolicy\":{}"), &spec, &timeout_s, &f) < 0)
		fail_msg("%s", f.message);
	assert_string_equal(spec.network.policy, "{\"defaultAction\":\"deny\",\"egress\":[]}");
	assert_false(spec.network.credential_proxy);
	sandbox_spec_done(&spec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_what_is_wrong_and_names_it),
		cmocka_unit_test(takes_everything_that_there_is),
		cmocka_unit_test(takes_null_for_absent),
		cmocka_unit_test(splits_a_command_line_as_a_shell_would),
		cmocka_unit_test(keeps_a_policy_in_one_form),
		cmocka_unit_test(remembers_that_metadata_was_given_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
