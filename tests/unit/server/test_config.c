/*
 * test_config.c - the configuration: defaults, the file over them, and what is wrong with a file.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "server/config.h"
#include "server/config_schema.h"

struct said {
	int n;
	char last[256];
};

static void note(void *arg, const char *sentence)
{
	struct said *s = arg;

	s->n++;
	snprintf(s->last, sizeof(s->last), "%s", sentence);
}

static int load(const char *text, struct said *said, struct config *ret, struct err *e)
{
	char path[] = "/tmp/test_config.XXXXXX";
	int fd = mkstemp(path), r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	*said = (struct said){0};
	r = config_load(path, note, said, ret, e);
	unlink(path);
	return r;
}

#define GATEWAY                                                                                    \
	"[ingress]\nmode = \"gateway\"\n[ingress.gateway]\naddress = \"*.a.test\"\n"               \
	"route.mode = \"wildcard\"\n"

static void gateways_are_whole_or_refused(void **state)
{
	static const struct {
		const char *text, *wrong; /* NULL: nothing */
	} cases[] = {
		{GATEWAY, NULL},
		{GATEWAY
		 "[ingress.secure_access]\nactive_key = \"b\"\n"
		 "keys = [{key_id = \"a\", key = \"AQID\"}, {key_id = \"b\", key = \"AQ\"}]\n",
		 NULL},
		{GATEWAY "[ingress.secure_access]\nactive_key = \"c\"\n"
			 "[[ingress.secure_access.keys]]\nkey_id = \"a\"\nkey = \"AQID\"\n",
		 "no key 'c'"},
		{GATEWAY
		 "[ingress.secure_access]\nactive_key = \"a\"\n"
		 "keys = [{key_id = \"a\", key = \"AQID\"}, {key_id = \"a\", key = \"AQ\"}]\n",
		 "two 'a'"},
		{GATEWAY "[ingress.secure_access]\nkeys = [{key_id = \"a\", key = \"AQID\"}]\n",
		 "active_key"},
		{GATEWAY "[ingress.secure_access]\nactive_key = \"a\"\nkeys = [\"x\"]\n", "key_id"},
		{GATEWAY "[ingress.secure_access]\nactive_key = \"A\"\n"
			 "keys = [{key_id = \"A\", key = \"AQID\"}]\n",
		 "0-9 and a-z"},
		{GATEWAY "[ingress.secure_access]\nactive_key = \"a\"\n"
			 "keys = [{key_id = \"a\", key = \"!\"}]\n",
		 "base64"},
		{"[ingress.secure_access]\nactive_key = \"a\"\n"
		 "keys = [{key_id = \"a\", key = \"AQID\"}]\n",
		 "gateway"},
		{"[ingress]\nmode = \"gateway\"\n", "needs ingress.gateway.address"},
		{"[ingress.gateway]\naddress = \"*.a.test\"\n", "only"},
		{"[ingress]\nmode = \"gateway\"\n[ingress.gateway]\naddress = \"a.test\"\n"
		 "route.mode = \"wildcard\"\n",
		 "*.example.com"},
		{"[ingress]\nmode = \"both\"\n", "cannot be"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE;
		struct config c;
		struct said said;
		int r = load(cases[i].text, &said, &c, &e);

		if (cases[i].wrong) {
			assert_true(r < 0);
			assert_non_null(strstr(e.msg, cases[i].wrong));
			continue;
		}
		assert_int_equal(r, 0);
		assert_int_equal(said.n, 0);
		assert_true(c.ingress_gateway);
		config_done(&c);
	}
}

static void an_empty_file_gives_the_defaults(void **state)
{
	struct err e = ERR_NONE;
	struct config c;
	struct said said;

	(void)state;
	assert_int_equal(load("", &said, &c, &e), 0);
	assert_int_equal(said.n, 0);
	assert_string_equal(c.host, "0.0.0.0");
	assert_int_equal(c.port, 8080);
	assert_null(c.api_key);
	assert_null(c.eip);
	assert_int_equal(c.max_sandbox_timeout_seconds, 0);
	assert_string_equal(c.runtime_type, "native");
	assert_string_equal(c.state_dir, "/var/lib/opensandbox");
	assert_string_equal(c.user, "nobody");
	assert_true(c.network);
	assert_true(c.exec_token);
	assert_null(c.code_pool);
	assert_false(c.renew_enabled);
	assert_int_equal(c.pids_limit, 4096);
	assert_int_equal(c.seeds, 8);
	assert_int_equal(c.allowed_host_paths.len, 0);
	assert_int_equal(c.aliases_n, 1);
	assert_string_equal(c.aliases[0].pattern, "opensandbox/code-interpreter:*");
	assert_string_equal(c.aliases[0].image, "host");
	config_done(&c);
}

static void a_file_goes_over_the_defaults(void **state)
{
	struct err e = ERR_NONE;
	struct config c;
	struct said said;

	(void)state;
	assert_int_equal(
		load("[server]\nhost = \"localhost\"\nport = 1\napi_key = \"\"\n"
		     "eip = \"example.org/x\"\nmax_sandbox_timeout_seconds = 60\n"
		     "[runtime]\ntype = \"Native\"\n"
		     "[native]\nstate_dir = \"/s\"\nnetwork = false\nuser = \"7:8\"\n"
		     "[native.aliases]\n\"python:*\" = \"host\"\n\"debian\" = \"debian:12\"\n"
		     "[images]\nmax_size = \"2Gi\"\ninsecure_registries = [\"r:5000\"]\n"
		     "[images.mirrors]\n\"docker.io\" = [\"http://a\", \"https://b/c\"]\n"
		     "\"ghcr.io\" = \"https://d\"\n"
		     "[storage]\nallowed_host_paths = [\"/a\", \"/b\"]\n"
		     "[renew_intent]\nenabled = true\n",
		     &said, &c, &e),
		0);
	assert_int_equal(said.n, 0);
	assert_string_equal(c.host, "127.0.0.1");
	assert_int_equal(c.port, 1);
	assert_null(c.api_key);
	assert_string_equal(c.eip, "example.org/x");
	assert_int_equal(c.max_sandbox_timeout_seconds, 60);
	assert_string_equal(c.state_dir, "/s");
	assert_false(c.network);
	assert_true(c.renew_enabled);
	assert_int_equal(c.allowed_host_paths.len, 2);
	assert_int_equal(c.aliases_n, 2);
	assert_string_equal(c.aliases[1].pattern, "debian");
	assert_string_equal(c.aliases[1].image, "debian:12");
	assert_int_equal(c.images_max_bytes, INT64_C(2) << 30);
	assert_int_equal(c.images_max_image_bytes, INT64_C(64) << 30);
	assert_string_equal(c.insecure_registries.v[0], "r:5000");
	assert_int_equal(c.mirrors_n, 2);
	assert_string_equal(c.mirrors[0].urls.v[1], "https://b/c");
	assert_string_equal(c.mirrors[1].registry, "ghcr.io");
	config_done(&c);
}

static void what_nobody_reads_is_named_with_its_line(void **state)
{
	static const struct {
		const char *text, *sentence;
		int n;
	} cases[] = {
		{"x = 1\n", "line 1: there is no 'x', ignoring it", 1},
		{"[server]\n\nprot = 8080\n", "line 3: there is no 'server.prot', ignoring it", 1},
		{"[other]\na = 1\nb = 2\n", "line 1: there is no 'other', ignoring it", 1},
		{"[docker]\nnetwork_mode = \"bridge\"\npids_limit = 3\n",
		 "line 1: 'docker' has no effect here: the runtime is native", 1},
		{"[server]\nloop = \"uvloop\"\n",
		 "line 2: 'server.loop' has no effect here: there is one event loop", 1},
		{"[renew_intent.redis]\nenabled = false\n",
		 "line 1: 'renew_intent.redis' has no effect here: intents come through the proxy "
		 "alone",
		 1},
		{"[secure_runtime]\ntype = \"\"\n",
		 "line 1: 'secure_runtime' has no effect here: the runtime is native", 1},
		{"[native]\na = 1\nb = 2\n", "line 3: there is no 'native.b', ignoring it", 2},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE;
		struct config c;
		struct said said;

		assert_int_equal(load(cases[i].text, &said, &c, &e), 0);
		assert_string_equal(said.last, cases[i].sentence);
		assert_int_equal(said.n, cases[i].n);
		config_done(&c);
	}
}

static void a_wrong_file_is_refused_with_file_and_reason(void **state)
{
	static const struct {
		const char *text, *part;
	} cases[] = {
		{"[server\n", ": line 1: "},
		{"[server]\nport = \"8080\"\n", ": line 2: "},
		{"[server]\nport = 0\n", ": line 2: "},
		{"[server]\nport = 65536\n", ": line 2: "},
		{"[server]\nport = 1\nport = 2\n", ": line 3: "},
		{"[server]\nhost = \"\"\n", "server.host must not be empty"},
		{"[server]\nhost = \"example.org\"\n", "server.host must be an IP address"},
		{"[server]\nmax_sandbox_timeout_seconds = 59\n", ": line 2: "},
		{"server = 1\n", ": line 1: "},
		{"[runtime]\ntype = \"docker\"\n",
		 "line 2: runtime.type cannot be 'docker' here; it can be native"},
		{"[secure_runtime]\ntype = \"gvisor\"\n", "line 2: secure_runtime.type cannot"},
		{"[log]\nlevel = \"LOUD\"\n", "line 2: log.level cannot be 'LOUD'"},
		{"[native]\nnetwork = 1\n", ": line 2: "},
		{"[native]\nstate_dir = \"relative\"\n", "must be an absolute path"},
		{"[storage]\nallowed_host_paths = [\"/a\", \"b\"]\n", "'b' is none"},
		{"[storage]\nallowed_host_paths = [\"/\"]\n", "'/' is none"},
		{"[storage]\nallowed_host_paths = [\"/a/../b\"]\n", "'..'"},
		{"[storage]\nallowed_host_paths = [\"/var/lib/\"]\n", "native.state_dir lie"},
		{"[storage]\nallowed_host_paths = [\"/var/lib/opensandbox/x\"]\n",
		 "native.state_dir lie"},
		{"[native]\nsubnet = \"10.0.0.0\"\n", "native.subnet must be"},
		{"[native]\nsubnet = \"10.0.0.1/24\"\n", "native.subnet must be"},
		{"[native]\nsubnet = \"10.0.0.0/30\"\n", "native.subnet must be"},
		{"[native]\ncode_pool = \"python:x\"\n", "native.code_pool: "},
		{"[native]\naliases = 1\n", ": line 2: "},
		{"[native.aliases]\n\"a\" = \"No Image\"\n", "line 2: an alias is"},
		{"[native.aliases]\n\"a\" = 1\n", "line 2: an alias is"},
		{"[images]\nmax_size = \"much\"\n", "line 2: images.max_size: 'much'"},
		{"[images]\nmax_size = 1\n", ": line 2: "},
		{"[images]\npull_policy = \"Maybe\"\n", "line 2: images.pull_policy cannot"},
		{"[images]\ndocker_config = \"/nonexistent/x\"\n", "images.docker_config: /none"},
		{"[images.mirrors]\n\"docker.io\" = \"mirror.local\"\n", "line 2: a mirror is"},
		{"[images.mirrors]\n\"docker.io\" = []\n", "line 2: a mirror is"},
		{"[images.mirrors]\n\"docker.io\" = [1]\n", "line 2: a mirror is"},
		{"[storage]\nallowed_host_paths = [1]\n", "line 2: storage.allowed_host_paths"},
		{"[storage]\nallowed_host_paths = \"/a\"\n", ": line 2: "},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE;
		struct config c;
		struct said said;

		assert_true(load(cases[i].text, &said, &c, &e) < 0);
		if (!strstr(e.msg, cases[i].part) || strncmp(e.msg, "/tmp/test_config.", 17) != 0)
			fail_msg("%s said: %s", cases[i].text, e.msg);
	}
}

static void a_file_that_is_not_there_is_named(void **state)
{
	struct err e = ERR_NONE;
	struct said said = {0};
	struct config c;

	(void)state;
	assert_int_equal(config_load("/nonexistent/x", note, &said, &c, &e), -ENOENT);
	assert_string_equal(e.msg, "/nonexistent/x: No such file or directory");
}

/* What init-config writes can be read, says nothing odd, and means the defaults. */
static void written_files_are_readable(void **state)
{
	(void)state;
	for (int example = 0; example < 2; example++) {
		osb_cleanup(buf_done) struct buf text = BUF_INIT(65536);
		struct err e = ERR_NONE;
		struct config c;
		struct said said;

		assert_int_equal(config_write_file(&text, example != 0, "the-key"), 0);
		if (load(buf_str(&text), &said, &c, &e) < 0)
			fail_msg("%s", e.msg);
		assert_int_equal(said.n, 0);
		assert_string_equal(c.api_key, "the-key");
		assert_string_equal(c.host, example ? "127.0.0.1" : "0.0.0.0");
		assert_int_equal(c.aliases_n, 1);
		config_done(&c);
	}
}

/* Every commented line of the long file is what a reader would uncomment. */
static void commented_defaults_are_valid(void **state)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(65536), bare = BUF_INIT(65536);
	struct view rest, line;
	struct err e = ERR_NONE;
	struct config c;
	struct said said;

	(void)state;
	assert_int_equal(config_write_file(&text, false, "k"), 0);
	rest = buf_view(&text);
	while (view_split(&rest, '\n', &line)) {
		bool setting = view_starts(line, VIEW("# ")) &&
			       view_find_view(line, VIEW(" = ")) < line.len;

		if (setting || view_starts(line, VIEW("# [")))
			line = view_skip(line, 2);
		assert_int_equal(buf_append_view(&bare, line), 0);
		assert_int_equal(buf_append_char(&bare, '\n'), 0);
	}
	if (load(buf_str(&bare), &said, &c, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(said.n, 0);
	assert_int_equal(c.max_sandbox_timeout_seconds, 3600);
	config_done(&c);
}

static void every_key_has_a_section_and_a_meaning(void **state)
{
	(void)state;
	for (const struct config_key *k = config_keys; k->section; k++) {
		osb_cleanup(mem_freep) char *full = mem_printf("%s.%s", k->section, k->name);

		assert_true(strlen(k->meaning) > 10);
		assert_true(config_section_meaning(k->section)[0]);
		assert_ptr_equal(config_key_find(view_of(full)), k);
		assert_null(config_idle_find(view_of(full)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_file_gives_the_defaults),
		cmocka_unit_test(gateways_are_whole_or_refused),
		cmocka_unit_test(a_file_goes_over_the_defaults),
		cmocka_unit_test(what_nobody_reads_is_named_with_its_line),
		cmocka_unit_test(a_wrong_file_is_refused_with_file_and_reason),
		cmocka_unit_test(a_file_that_is_not_there_is_named),
		cmocka_unit_test(written_files_are_readable),
		cmocka_unit_test(commented_defaults_are_valid),
		cmocka_unit_test(every_key_has_a_section_and_a_meaning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
