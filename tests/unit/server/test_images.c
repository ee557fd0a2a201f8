/*
 * test_images.c - images and layers over a real store: names, users, restarts, configurations.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "net/loop.h"
#include "runtime/runtime.h"
#include "server/failure.h"
#include "server/image_config.h"
#include "server/image_out.h"
#include "server/images.h"
#include "server/jobs.h"
#include "server/layers.h"
#include "server/sandbox.h"
#include "store/store.h"
#include "store/store_images.h"

#define HEX   "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"
#define ID(n) "sha256:" HEX #n
#define CONFIG(config, ids)                                                                        \
	"{\"os\":\"linux\",\"architecture\":\"amd64\",\"config\":" config                          \
	",\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[" ids "]}}"
#define ONE "\"" ID(1) "\""

struct test {
	char dir[32], path[64];
	struct loop *loop;
	struct store *store;
	struct jobs *jobs;
	struct layers *layers;
	struct images *images;
};

static void open_all(struct test *t)
{
	struct err e = ERR_NONE;

	assert_int_equal(store_open(t->path, &t->store, &e), 0);
	t->jobs = jobs_new(t->loop, -1);
	assert_int_equal(layers_new(t->loop, t->store, t->jobs, &t->layers, &e), 0);
	assert_int_equal(images_new(t->loop, t->store, t->layers, &t->images, &e), 0);
}

static void close_all(struct test *t)
{
	images_free(t->images);
	layers_free(t->layers);
	jobs_free(t->jobs);
	store_close(t->store);
}

static int set_up(void **state)
{
	struct test *t = mem_new(struct test);
	struct err e = ERR_NONE;

	snprintf(t->dir, sizeof(t->dir), "/tmp/test_images.XXXXXX");
	assert_non_null(mkdtemp(t->dir));
	snprintf(t->path, sizeof(t->path), "%s/db", t->dir);
	assert_int_equal(loop_new(&t->loop, &e), 0);
	open_all(t);
	*state = t;
	return 0;
}

static int tear_down(void **state)
{
	struct test *t = *state;

	close_all(t);
	loop_free(t->loop);
	(void)unlink(t->path);
	rmdir(t->dir);
	free(t);
	return 0;
}

static uint64_t add_layer(struct test *t, const char *diff_id, uint64_t bytes)
{
	struct store_layer made = {.diff_id = diff_id, .bytes = bytes, .files = 1};
	struct err e = ERR_NONE;

	assert_int_equal(layers_take_number(t->layers, &made.number, &e), 0);
	assert_int_equal(layers_add(t->layers, &made, &e), 0);
	return made.number;
}

static struct image *add_image(struct test *t, const char *id, const uint64_t *layers, size_t n)
{
	struct images_record record = {
		.id = id,
		.digest = ID(9),
		.config = CONFIG("{\"Env\":[\"A=b\"],\"Cmd\":[\"x\"]}", ONE),
		.layers = layers,
		.layers_n = n,
	};
	struct image *image = NULL;
	struct err e = ERR_NONE;

	if (images_add(t->images, &record, &image, &e) < 0)
		fail_msg("%s", e.msg);
	return image;
}

static void numbers_are_never_used_twice(void **state)
{
	struct test *t = *state;
	uint64_t first, many, next;
	struct err e = ERR_NONE;

	assert_int_equal(store_take_numbers(t->store, "layer", 1, &first, &e), 0);
	assert_int_equal(store_take_numbers(t->store, "layer", 100, &many, &e), 0);
	assert_int_equal(store_take_numbers(t->store, "layer", 0, &next, &e), 0);
	assert_int_equal(first, 1);
	assert_int_equal(many, 2);
	assert_int_equal(next, 102);
	assert_int_equal(store_take_numbers(t->store, "volume", 0, &next, &e), 0);
	assert_int_equal(next, 1);
}

/* A change of several parts that fails in the middle leaves nothing, and is no obstacle to others.
 */
static void half_a_change_is_none(void **state)
{
	struct store_layer layer = {.number = 7, .diff_id = ID(7)};
	struct test *t = *state;
	struct err e = ERR_NONE;
	int r;

	assert_int_equal(store_begin(t->store, &e), 0);
	assert_int_equal(store_put_layer(t->store, &layer, &e), 0);
	r = store_put_layer(t->store, &layer, &e); /* the number is taken */
	assert_true(r < 0);
	assert_int_equal(store_end(t->store, r, &e), r);
	assert_int_equal(store_begin(t->store, &e), 0);
	assert_int_equal(store_end(t->store, store_put_layer(t->store, &layer, &e), &e), 0);
}

static void images_are_found_by_names_ids_and_beginnings(void **state)
{
	struct test *t = *state;
	uint64_t layer = add_layer(t, ID(1), 10);
	struct image *one = add_image(t, ID(a), &layer, 1), *two = add_image(t, ID(b), &layer, 1);
	struct err e = ERR_NONE;

	assert_int_equal(images_name(t->images, one, "docker.io/library/python:3.11", &e), 0);
	assert_ptr_equal(images_find(t->images, VIEW("python:3.11")), one);
	assert_ptr_equal(images_find(t->images, VIEW("docker.io/python:3.11")), one);
	assert_null(images_find(t->images, VIEW("python:3.12")));
	assert_null(images_find(t->images, VIEW("Not a name")));
	assert_ptr_equal(images_find(t->images, VIEW(ID(b))), two);
	assert_ptr_equal(images_find(t->images, VIEW(HEX "b")), two);
	assert_null(images_find(t->images, VIEW("0123456789ab"))); /* both begin so */
	/* A name leads to one image. */
	assert_int_equal(images_name(t->images, two, "docker.io/library/python:3.11", &e), 0);
	assert_ptr_equal(images_find(t->images, VIEW("python:3.11")), two);
	assert_int_equal(one->names.len, 0);
	assert_int_equal(images_unname(t->images, "docker.io/library/python:3.11", &e), 0);
	assert_null(images_find(t->images, VIEW("python:3.11")));
	assert_ptr_equal(add_image(t, ID(a), &layer, 1), one);
}

static void an_image_has_so_many_names(void **state)
{
	struct test *t = *state;
	uint64_t layer = add_layer(t, ID(1), 10);
	struct image *one = add_image(t, ID(a), &layer, 1), *two = add_image(t, ID(b), &layer, 1);
	struct err e = ERR_NONE;
	char name[32];

	for (int i = 0; i < IMAGES_NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "r:1/a:%d", i);
		assert_int_equal(images_name(t->images, one, name, &e), 0);
	}
	assert_int_equal(images_name(t->images, one, name, &e), 0); /* it has that one */
	assert_true(images_name(t->images, one, "r:1/a:more", &e) < 0);
	assert_non_null(strstr(e.msg, "remove some"));
	assert_null(images_by_key(t->images, "r:1/a:more"));
	/* Another image takes one over. */
	assert_int_equal(images_name(t->images, two, name, &e), 0);
	assert_int_equal(images_name(t->images, one, "r:1/a:more", &e), 0);
}

static void an_id_means_one_image(void **state)
{
	struct test *t = *state;
	uint64_t layer = add_layer(t, ID(1), 10), other = add_layer(t, ID(2), 10);
	struct images_record record = {
		.id = ID(a), .config = CONFIG("{}", ONE), .layers = &other, .layers_n = 1};
	struct image *image = add_image(t, ID(a), &layer, 1), *found = NULL;
	struct err e = ERR_NONE;

	assert_true(images_add(t->images, &record, &found, &e) < 0);
	assert_ptr_equal(images_by_id(t->images, VIEW(ID(a))), image);
	assert_int_equal(image->root.layers[0], layer);
}

static void everything_is_there_after_a_restart(void **state)
{
	struct test *t = *state;
	uint64_t layers[4];
	struct image *image;
	struct err e = ERR_NONE;

	layers[0] = add_layer(t, ID(1), 10);
	layers[1] = layers[3] = add_layer(t, ID(2), 20);
	layers[2] = add_layer(t, NULL, 30);
	image = add_image(t, ID(a), layers, 4);
	/* The second comes twice and counts where it is highest. */
	assert_int_equal(image->root.layers_n, 3);
	assert_int_equal(image->root.layers[1], layers[2]);
	assert_int_equal(images_name(t->images, image, "r:1/a:b", &e), 0);
	close_all(t);
	open_all(t);
	image = images_by_key(t->images, "r:1/a:b");
	assert_non_null(image);
	assert_string_equal(image->digest, ID(9));
	assert_int_equal(image->root.layers_n, 3);
	assert_int_equal(image->root.layers[2], layers[1]);
	assert_string_equal(pairs_get(&image->root.env, "A"), "b");
	assert_int_equal(images_bytes(t->images, image), 60);
	assert_int_equal(layers_image_bytes(t->layers), 30); /* a capture is none of an image */
	assert_int_equal(layers_get(t->layers, layers[0])->users, 1);
	assert_ptr_equal(layers_find(t->layers, VIEW(ID(2))), layers_get(t->layers, layers[1]));
	assert_int_equal(images_remove(t->images, image, &e), 0);
	assert_int_equal(layers_get(t->layers, layers[0])->users, 0);
	close_all(t);
	open_all(t);
	assert_null(images_next(t->images, NULL));
}

/* A runtime that is asked to forget layers, and says no more. */
struct forgetful {
	struct runtime base;
	struct loop *loop;
	size_t times;
	uint64_t last;
};

static void forget_layers(struct runtime *r, const uint64_t *layers, size_t n, runtime_done_fn *fn,
			  void *arg)
{
	struct forgetful *f = container_of(r, struct forgetful, base);
	struct err e = ERR_NONE;

	assert_int_equal(n, 1);
	f->last = layers[0];
	f->times++;
	(void)err_set(&e, -EIO, "no");
	fn(arg, &e);
	loop_stop(f->loop);
}

/* The pull that wanted it may be cancelled while a layer is made. */
static void a_layer_that_nobody_uses_goes(void **state)
{
	static const struct runtime_ops ops = {.forget_layers = forget_layers};
	struct test *t = *state;
	struct forgetful runtime = {.base = {.ops = &ops}, .loop = t->loop};
	uint64_t early = add_layer(t, ID(1), 10), late;

	layers_set_runtime(t->layers, &runtime.base);
	layers_release(t->layers); /* the start is over */
	loop_run(t->loop);
	assert_int_equal(runtime.times, 1);
	assert_int_equal(runtime.last, early);
	late = add_layer(t, ID(2), 10);
	loop_run(t->loop); /* ends by itself if there is nothing to wait for */
	assert_int_equal(runtime.times, 2);
	assert_int_equal(runtime.last, late);
	assert_null(layers_get(t->layers, late));
}

/* There may always be a pull under way. */
static void captures_go_whoever_holds_layers(void **state)
{
	static const struct runtime_ops ops = {.forget_layers = forget_layers};
	struct test *t = *state;
	struct forgetful runtime = {.base = {.ops = &ops}, .loop = t->loop};
	uint64_t of_image = add_layer(t, ID(1), 10), capture = add_layer(t, NULL, 10);

	layers_set_runtime(t->layers, &runtime.base);
	loop_run(t->loop);
	assert_int_equal(runtime.times, 1);
	assert_int_equal(runtime.last, capture);
	assert_non_null(layers_get(t->layers, of_image));
}

struct exports {
	int last_status, refused, retry_after_s;
};

static void exported(void *arg, const char *upload, uint64_t bytes, const struct failure *f)
{
	struct exports *x = arg;

	assert_null(upload);
	assert_int_equal(bytes, 0);
	x->last_status = f->status;
	x->retry_after_s = f->retry_after_s;
	x->refused++;
}

/* Every one of them is work for minutes. */
static void so_many_exports_at_once(void **state)
{
	static const struct sandbox_root root = {.host_base = true};
	struct image_out_content content = {.root = &root};
	struct test *t = *state;
	struct image_outs *outs = image_outs_new(NULL, t->jobs, t->layers);
	struct exports x = {0};

	for (int i = 0; i < 16; i++)
		image_export(outs, &content, exported, &x);
	assert_int_equal(x.refused, 0);
	image_export(outs, &content, exported, &x);
	assert_int_equal(x.refused, 1);
	assert_int_equal(x.last_status, 503);
	assert_true(x.retry_after_s > 0);
	image_outs_free(outs); /* tells the others, too */
	assert_int_equal(x.refused, 17);
}

static void sandboxes_are_users(void **state)
{
	struct test *t = *state;
	uint64_t layer = add_layer(t, ID(1), 10);
	struct image *image = add_image(t, ID(a), &layer, 1);
	struct sandbox_spec spec = {0};
	struct failure f = FAILURE_NONE;
	struct err e = ERR_NONE;

	assert_int_equal(images_apply(t->images, image, &spec, &f), 0);
	assert_string_equal(spec.entrypoint.v[0], "x");
	assert_string_equal(spec.root.image, ID(a));
	images_use(t->images, &spec.root);
	assert_int_equal(image->users, 1);
	assert_int_equal(layers_get(t->layers, layer)->users, 2);
	/* Removed by force, its files stay with the sandbox. */
	assert_int_equal(images_remove(t->images, image, &e), 0);
	assert_int_equal(layers_get(t->layers, layer)->users, 1);
	images_leave(t->images, &spec.root);
	assert_int_equal(layers_get(t->layers, layer)->users, 0);
	sandbox_spec_done(&spec);
}

static int see_pull(void *arg, const struct store_pull *p)
{
	assert_string_equal(p->auth, "{\"password\":\"wonderful\"}");
	(*(int *)arg)++;
	return 0;
}

static bool on_disk(const char *path, const char *suffix, const char *word)
{
	osb_cleanup(mem_freep) char *name = mem_printf("%s%s", path, suffix), *bytes = NULL;
	FILE *f = fopen(name, "rb");
	size_t n, len = strlen(word);
	bool found = false;

	if (!f)
		return false;
	bytes = mem_alloc(1 << 20);
	n = fread(bytes, 1, 1 << 20, f);
	fclose(f);
	for (size_t i = 0; !found && i + len <= n; i++)
		found = memcmp(bytes + i, word, len) == 0;
	return found;
}

static void credentials_leave_the_disk_with_their_pull(void **state)
{
	struct test *t = *state;
	struct store_pull pull = {"r/a:b", "{\"password\":\"wonderful\"}", 1};
	struct err e = ERR_NONE;
	int seen = 0;

	assert_int_equal(store_put_pull(t->store, &pull, &e), 0);
	assert_int_equal(store_each_pull(t->store, see_pull, &seen, &e), 0);
	assert_int_equal(seen, 1);
	assert_true(on_disk(t->path, "", "wonderful") || on_disk(t->path, "-wal", "wonderful"));
	assert_int_equal(store_delete_pull(t->store, "r/a:b", &e), 0);
	assert_int_equal(store_each_pull(t->store, see_pull, &seen, &e), 0);
	assert_int_equal(seen, 1);
	assert_false(on_disk(t->path, "", "wonderful") || on_disk(t->path, "-wal", "wonderful"));
}

static void configurations_say_what_runs(void **state)
{
	static const char text[] = CONFIG(
		"{\"Env\":[\"A=1\",\"no equals\",\"A=2\",\"E=\",\"OPENSANDBOX_LIFECYCLE=x\"],"
		"\"User\":\"app\",\"WorkingDir\":\"srv\",\"Entrypoint\":[\"a\"],\"Cmd\":[\"b\","
		"\"c\"],"
		"\"Volumes\":{\"/v\":{}}}",
		ONE);
	struct sandbox_root root = {0};
	struct image_facts facts;
	struct err e = ERR_NONE;

	(void)state;
	if (image_config_read(VIEW(text), &root, &facts, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(root.env.n, 2);
	assert_string_equal(pairs_get(&root.env, "A"), "2");
	assert_string_equal(pairs_get(&root.env, "E"), "");
	assert_string_equal(root.user, "app");
	assert_string_equal(root.cwd, "/srv");
	assert_int_equal(root.start.len, 3);
	assert_true(facts.has_volumes);
	assert_string_equal(facts.arch, "amd64");
	sandbox_root_done(&root);
	assert_true(image_config_read(VIEW("[]"), &root, &facts, &e) < 0);
	sandbox_root_done(&root);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(numbers_are_never_used_twice),
		TEST(half_a_change_is_none),
		TEST(images_are_found_by_names_ids_and_beginnings),
		TEST(an_image_has_so_many_names),
		TEST(an_id_means_one_image),
		TEST(everything_is_there_after_a_restart),
		TEST(a_layer_that_nobody_uses_goes),
		TEST(captures_go_whoever_holds_layers),
		TEST(so_many_exports_at_once),
		TEST(sandboxes_are_users),
		TEST(credentials_leave_the_disk_with_their_pull),
		cmocka_unit_test(configurations_say_what_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
