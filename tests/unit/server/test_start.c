/*
 * test_start.c - what happens before the server serves: options, keys, users, the state directory.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "server/config.h"
#include "server/guard.h"
#include "server/init_config.h"
#include "server/options.h"
#include "server/privileges.h"
#include "server/state_dir.h"

static void options_say_what_to_do(void **state)
{
	static const struct {
		const char *argv[6];
		int verb; /* -1 = refused */
		const char *config, *path;
	} cases[] = {
		{{"x"}, OPTIONS_SERVE, NULL, NULL},
		{{"x", "--config", "f"}, OPTIONS_SERVE, "f", NULL},
		{{"x", "--config=f"}, OPTIONS_SERVE, "f", NULL},
		{{"x", "init-config"}, OPTIONS_INIT_CONFIG, NULL, NULL},
		{{"x", "init-config", "p", "--example", "native", "--force"},
		 OPTIONS_INIT_CONFIG,
		 NULL,
		 "p"},
		{{"x", "--force", "init-config", "p"}, OPTIONS_INIT_CONFIG, NULL, "p"},
		{{"x", "config-reference"}, OPTIONS_CONFIG_REFERENCE, NULL, NULL},
		{{"x", "--help"}, OPTIONS_HELP, NULL, NULL},
		{{"x", "--version", "whatever"}, OPTIONS_VERSION, NULL, NULL},
		{{"x", "serve"}, -1, NULL, NULL},
		{{"x", "--config"}, -1, NULL, NULL},
		{{"x", "--port", "1"}, -1, NULL, NULL},
		{{"x", "--force"}, -1, NULL, NULL},
		{{"x", "init-config", "--example", "docker"}, -1, NULL, NULL},
		{{"x", "init-config", "a", "b"}, -1, NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE;
		struct options o;
		char *argv[7] = {NULL};
		int argc = 0, r;

		for (; argc < 6 && cases[i].argv[argc]; argc++)
			argv[argc] = mem_strdup(cases[i].argv[argc]);
		r = options_parse(argc, argv, &o, &e);
		assert_int_equal(r < 0 ? -1 : (int)o.verb, cases[i].verb);
		if (r < 0) {
			assert_true(e.msg[0]);
		} else {
			assert_int_equal(!o.config, !cases[i].config);
			assert_int_equal(!o.path, !cases[i].path);
		}
		for (int k = 0; k < argc; k++)
			free(argv[k]);
	}
}

static void the_configuration_is_looked_for_in_order(void **state)
{
	char *path;

	(void)state;
	setenv("HOME", "/home/x", 1);
	unsetenv("SANDBOX_CONFIG_PATH");
	path = options_config_path(NULL);
	assert_string_equal(path, "/home/x/.sandbox.toml");
	free(path);
	setenv("SANDBOX_CONFIG_PATH", "~/y.toml", 1);
	path = options_config_path(NULL);
	assert_string_equal(path, "/home/x/y.toml");
	free(path);
	path = options_config_path("/z");
	assert_string_equal(path, "/z");
	free(path);
	unsetenv("SANDBOX_CONFIG_PATH");
	unsetenv("HOME");
	assert_null(options_config_path(NULL));
}

static void the_environment_decides_about_the_key(void **state)
{
	static const struct {
		const char *configured, *key, *insecure, *expected;
		int r;
	} cases[] = {
		{"c", NULL, NULL, "c", 0},	   {"c", "k", NULL, "k", 0},
		{NULL, "k", NULL, "k", 0},	   {"c", "", NULL, NULL, -EPERM},
		{"c", "", "YES", NULL, 0},	   {NULL, NULL, "YES", NULL, 0},
		{NULL, NULL, "yes", NULL, -EPERM}, {NULL, NULL, NULL, NULL, -EPERM},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct config c = {0};
		struct err e = ERR_NONE;

		c.api_key = cases[i].configured ? mem_strdup(cases[i].configured) : NULL;
		unsetenv("OPENSANDBOX_SERVER_API_KEY");
		unsetenv("OPENSANDBOX_INSECURE_SERVER");
		if (cases[i].key)
			setenv("OPENSANDBOX_SERVER_API_KEY", cases[i].key, 1);
		if (cases[i].insecure)
			setenv("OPENSANDBOX_INSECURE_SERVER", cases[i].insecure, 1);
		assert_int_equal(guard_api_key(&c, &e), cases[i].r);
		if (cases[i].expected)
			assert_string_equal(c.api_key, cases[i].expected);
		else
			assert_null(c.api_key);
		assert_null(getenv("OPENSANDBOX_SERVER_API_KEY")); /* nobody inherits it */
		free(c.api_key);
	}
}

static void users_are_numbers_or_names_but_never_root(void **state)
{
	static const struct {
		const char *text;
		int r;
		unsigned uid, gid;
	} cases[] = {
		{"1000:1001", 0, 1000, 1001},	 {"nobody", 0, 65534, 65534},
		{"root", -EINVAL, 0, 0},	 {"0:1", -EINVAL, 0, 0},
		{"1:0", -EINVAL, 0, 0},		 {"4294967295:1", -EINVAL, 0, 0},
		{"no such user", -ENOENT, 0, 0}, {"1:", -ENOENT, 0, 0},
		{"1:x", -ENOENT, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct privileges p = {0};
		struct err e = ERR_NONE;

		assert_int_equal(privileges_find(cases[i].text, &p, &e), cases[i].r);
		if (cases[i].r == 0) {
			assert_int_equal(p.uid, cases[i].uid);
			assert_int_equal(p.gid, cases[i].gid);
		}
	}
}

static void init_config_keeps_an_existing_file(void **state)
{
	char dir[] = "/tmp/test_start.XXXXXX", path[64];
	struct options o = {.verb = OPTIONS_INIT_CONFIG};
	struct err e = ERR_NONE;
	struct stat st;
	char *wrote = NULL;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/c.toml", dir);
	o.path = path;
	assert_int_equal(init_config(&o, &wrote, &e), 0);
	assert_string_equal(wrote, path);
	free(wrote);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(init_config(&o, &wrote, &e), -EEXIST);
	assert_non_null(strstr(e.msg, "--force"));
	o.force = true;
	o.example = "native";
	assert_int_equal(init_config(&o, &wrote, &e), 0);
	free(wrote);
	unlink(path);
	rmdir(dir);
}

static void remove_state(const char *dir)
{
	static const char *const parts[] = {
		"lock",
		"lock.processes",
		"boxes",
		"run",
		"db",
		"images/layers",
		"images/tmp",
		"images/blobs",
		"images/uploads",
		"images",
		"volumes",
		"ossfs",
		"",
	};
	char path[96];

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, parts[i]);
		assert_int_equal(remove(path), 0);
	}
}

static void one_server_at_a_time_uses_a_state_directory(void **state)
{
	struct state_dir_locks first = {-1, -1}, second = {-1, -1};
	char base[] = "/tmp/test_start.XXXXXX", dir[64], path[96];
	struct err e = ERR_NONE;
	struct stat st;

	(void)state;
	if (geteuid() != 0)
		skip(); /* directories change hands */
	assert_non_null(mkdtemp(base));
	snprintf(dir, sizeof(dir), "%s/a/b", base);
	assert_int_equal(state_dir_open(dir, 65534, 65534, &first, &e), 0);
	assert_int_equal(state_dir_open(dir, 65534, 65534, &second, &e), -EBUSY);
	assert_non_null(strstr(e.msg, dir));
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0711);
	snprintf(path, sizeof(path), "%s/db", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(st.st_uid, 65534);
	snprintf(path, sizeof(path), "%s/boxes", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0710);
	assert_int_equal(st.st_uid, 0);
	assert_int_equal(st.st_gid, 65534);
	state_dir_close(&first);
	assert_int_equal(state_dir_open(dir, 65534, 65534, &second, &e), 0);
	state_dir_close(&second);
	remove_state(dir);
	snprintf(dir, sizeof(dir), "%s/a", base);
	rmdir(dir);
	rmdir(base);
}

/* The supervisor has been killed; a child of it lives a moment longer. */
static void a_successor_waits_for_what_is_left_of_a_server(void **state)
{
	struct state_dir_locks first = {-1, -1}, second = {-1, -1};
	char dir[] = "/tmp/test_start.XXXXXX", c;
	struct err e = ERR_NONE;
	int alone[2];
	pid_t child;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_non_null(mkdtemp(dir));
	assert_int_equal(pipe2(alone, O_CLOEXEC), 0);
	assert_int_equal(state_dir_open(dir, 65534, 65534, &first, &e), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		close(first.server);
		close(alone[1]);
		usleep(100000); /* some of it while the other one waits, however late that is */
		_exit(0);
	}
	state_dir_close(&first);
	close(alone[1]);
	assert_int_equal(read(alone[0], &c, 1), 0); /* the child has let go of the first lock */
	assert_int_equal(state_dir_open(dir, 65534, 65534, &second, &e), 0);
	state_dir_close(&second);
	close(alone[0]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	remove_state(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_say_what_to_do),
		cmocka_unit_test(the_configuration_is_looked_for_in_order),
		cmocka_unit_test(the_environment_decides_about_the_key),
		cmocka_unit_test(users_are_numbers_or_names_but_never_root),
		cmocka_unit_test(init_config_keeps_an_existing_file),
		cmocka_unit_test(one_server_at_a_time_uses_a_state_directory),
		cmocka_unit_test(a_successor_waits_for_what_is_left_of_a_server),
	};

	(void)!freopen("/dev/null", "r", stdin); /* nobody to ask */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
