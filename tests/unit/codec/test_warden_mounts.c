/*
 * test_warden_mounts.c - what a sandbox's root is made of, written and read back.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "codec/warden_mounts.h"

static void set_text(char to[WARDEN_PATH_MAX], const char *text)
{
	memset(to, 0, WARDEN_PATH_MAX);
	memcpy(to, text, strnlen(text, WARDEN_PATH_MAX));
}

static struct warden_mounts *some_mounts(void)
{
	struct warden_mounts *m = mem_new(struct warden_mounts);

	m->host_base = true;
	m->layers[m->layers_n++] = 3;
	m->layers[m->layers_n++] = UINT64_MAX;
	for (size_t i = 0; i < 2; i++) {
		struct warden_volume *v = &m->volumes[m->volumes_n++];

		v->kind = WARDEN_VOLUME_NAMED + (uint32_t)i;
		v->number = i;
		v->read_only = i == 0;
		set_text(v->sub_path, i == 0 ? "" : "a/b");
		set_text(v->mount_path, i == 0 ? "/data" : "/data/below");
	}
	return m;
}

static int read_back(const struct warden_mounts *m)
{
	osb_cleanup(buf_done) struct buf file = BUF_INIT(WARDEN_MOUNTS_MAX_BYTES);
	osb_cleanup(mem_freep) struct warden_mounts *back = mem_new(struct warden_mounts);
	struct err e = ERR_NONE;
	int r;

	assert_int_equal(warden_mounts_format(m, &file, &e), 0);
	r = warden_mounts_parse(buf_view(&file), back, &e);
	if (r == 0)
		assert_memory_equal(back, m, sizeof(*m));
	else
		assert_true(e.code == r && e.msg[0]);
	return r;
}

static void reads_back_what_it_wrote(void **state)
{
	osb_cleanup(mem_freep) struct warden_mounts *m = some_mounts();

	(void)state;
	assert_int_equal(read_back(m), 0);
	m->host_base = false;
	m->layers_n = WARDEN_LAYERS_MAX;
	for (size_t i = 0; i < m->layers_n; i++)
		m->layers[i] = i + 1;
	m->volumes_n = WARDEN_VOLUMES_MAX;
	for (size_t i = 0; i < m->volumes_n; i++) {
		m->volumes[i].kind = WARDEN_VOLUME_HOST;
		memset(m->volumes[i].mount_path, 0, WARDEN_PATH_MAX);
		snprintf(m->volumes[i].mount_path, WARDEN_PATH_MAX, "/v%zu", i);
	}
	assert_int_equal(read_back(m), 0);
}

static void refuses_files_of_another_size(void **state)
{
	osb_cleanup(mem_freep) struct warden_mounts *m = some_mounts();
	osb_cleanup(buf_done) struct buf file = BUF_INIT(WARDEN_MOUNTS_MAX_BYTES);
	struct err e = ERR_NONE;

	(void)state;
	assert_int_equal(warden_mounts_format(m, &file, &e), 0);
	for (size_t n = 0; n < file.len; n += n < 64 ? 1 : 97)
		assert_int_equal(warden_mounts_parse(view_first(buf_view(&file), n), m, &e),
				 -EPROTO);
	assert_int_equal(buf_append_char(&file, '\0'), 0);
	assert_int_equal(warden_mounts_parse(buf_view(&file), m, &e), -EPROTO);
}

static void refuses_bad_layers(void **state)
{
	osb_cleanup(mem_freep) struct warden_mounts *m = some_mounts();
	struct err e = ERR_NONE;
	struct buf none = BUF_INIT(16);

	(void)state;
	m->layers[1] = 3;
	assert_int_equal(read_back(m), -EPROTO);
	m->layers[1] = 0;
	assert_int_equal(read_back(m), -EPROTO);
	m->layers[0] = m->layers_n = 0;
	assert_int_equal(read_back(m), 0); /* the host image alone */
	m->host_base = false;
	assert_int_equal(read_back(m), -EPROTO);
	m->layers_n = WARDEN_LAYERS_MAX + 1;
	assert_int_equal(warden_mounts_format(m, &none, &e), -E2BIG);
}

static void refuses_bad_volumes(void **state)
{
	osb_cleanup(mem_freep) struct warden_mounts *m = some_mounts();

	(void)state;
	m->volumes[0].kind = 0;
	assert_int_equal(read_back(m), -EPROTO);
	m->volumes[0].kind = WARDEN_VOLUME_MOUNTED + 1;
	assert_int_equal(read_back(m), -EPROTO);
	m->volumes[0].kind = WARDEN_VOLUME_MOUNTED;
	assert_int_equal(read_back(m), 0);
	m->volumes[0].read_only = 2;
	assert_int_equal(read_back(m), -EPROTO);
	m->volumes[0].read_only = 0;
	m->volumes[0].mount_path[100] = 'x'; /* behind the NUL */
	assert_int_equal(read_back(m), -EPROTO);
	set_text(m->volumes[0].mount_path, m->volumes[1].mount_path);
	assert_int_equal(read_back(m), -EPROTO);
	memset(m->volumes[0].sub_path, 'a', WARDEN_PATH_MAX); /* no NUL */
	assert_int_equal(read_back(m), -EPROTO);
}

static void knows_good_paths(void **state)
{
	static const struct {
		const char *path;
		bool ok;
	} cases[] = {
		{"/data", true},    {"/a/b/c", true},	 {"/...", true},   {"/procs", true},
		{"/a/proc", true},  {"/", false},	 {"", false},	   {"data", false},
		{"/a/", false},	    {"//a", false},	 {"/a//b", false}, {"/a/./b", false},
		{"/a/../b", false}, {"/..", false},	 {"/proc", false}, {"/sys/fs", false},
		{"/dev", false},    {"/dev/shm", false}, {"/a/..", false}, {"/usr/local", true},
	};
	char name[WARDEN_NAME_MAX + 3];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct view path = view_of(cases[i].path);

		assert_int_equal(warden_mounts_path_ok(path), cases[i].ok);
		if (cases[i].ok)
			assert_true(warden_mounts_sub_path_ok(view_skip(path, 1)));
	}
	assert_true(warden_mounts_sub_path_ok(VIEW("")));
	assert_false(warden_mounts_sub_path_ok(VIEW("/a")));
	assert_false(warden_mounts_sub_path_ok(VIEW("a/..")));
	assert_false(warden_mounts_sub_path_ok(VIEW("a\0b")));
	assert_true(warden_mounts_sub_path_ok(VIEW("proc")));
	memset(name, 'a', sizeof(name));
	name[0] = '/';
	assert_true(warden_mounts_path_ok(view_mem(name, WARDEN_NAME_MAX + 1)));
	assert_false(warden_mounts_path_ok(view_mem(name, WARDEN_NAME_MAX + 2)));
}

static void a_layer_counts_where_it_is_highest(void **state)
{
	static const uint64_t added[] = {5, 6, 5, 7, 6, 6}, left[] = {5, 7, 6};
	osb_cleanup(mem_freep) struct warden_mounts *m = mem_new(struct warden_mounts);
	struct err e = ERR_NONE;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(added); i++)
		assert_int_equal(warden_mounts_add_layer(m, added[i], &e), 0);
	assert_int_equal(m->layers_n, ARRAY_LEN(left));
	assert_memory_equal(m->layers, left, sizeof(left));
	for (uint64_t i = 100; m->layers_n < WARDEN_LAYERS_MAX; i++)
		assert_int_equal(warden_mounts_add_layer(m, i, &e), 0);
	assert_int_equal(warden_mounts_add_layer(m, 5, &e), 0);
	assert_int_equal(warden_mounts_add_layer(m, 99, &e), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_back_what_it_wrote),
		cmocka_unit_test(refuses_files_of_another_size),
		cmocka_unit_test(refuses_bad_layers),
		cmocka_unit_test(refuses_bad_volumes),
		cmocka_unit_test(knows_good_paths),
		cmocka_unit_test(a_layer_counts_where_it_is_highest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
