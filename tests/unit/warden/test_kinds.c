/*
 * test_kinds.c - which kinds are one, which are followed, and how many seeds each should have.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "codec/warden_mounts.h"
#include "net/loop.h"
#include "warden/kinds.h"

static struct loop *loop;
static unsigned dropped_n;

static void dropped(void *arg, struct kind *k)
{
	(void)arg;
	(void)k;
	dropped_n++;
}

static int make(void **state)
{
	struct err e = ERR_NONE;

	if (loop_new(&loop, &e) < 0)
		return -1;
	*state = kinds_new(loop, dropped, NULL);
	dropped_n = 0;
	return 0;
}

static int end(void **state)
{
	kinds_free(*state);
	loop_free(loop);
	return 0;
}

/* On layer 1 and another. */
static struct kind *on(struct kinds *ks, uint64_t layer, size_t volumes_n)
{
	osb_cleanup(mem_freep) struct warden_mounts *m = mem_new(struct warden_mounts);

	m->layers[0] = 1;
	m->layers[1] = layer;
	m->layers_n = 2;
	m->volumes_n = volumes_n;
	return kinds_of(ks, m, WARDEN_NET_NAT);
}

static void the_same_is_one(void **state)
{
	struct kinds *ks = *state;
	struct kind *a = on(ks, 2, 0), *b = on(ks, 2, 0), *c = on(ks, 3, 0), *v = on(ks, 2, 1),
		    *w = on(ks, 2, 1), *host = kinds_host(ks, WARDEN_NET_NAT),
		    *alone = kinds_host(ks, WARDEN_NET_NONE);

	assert_ptr_equal(a, b);
	assert_ptr_not_equal(a, c);
	assert_ptr_not_equal(v, w); /* volumes: each of its own */
	assert_ptr_not_equal(a, v);
	assert_ptr_not_equal(host, alone);
	kind_unref(b);
	b = on(ks, 2, 0);
	assert_ptr_equal(a, b);
	kind_unref(a);
	kind_unref(b);
	kind_unref(c);
	kind_unref(v);
	kind_unref(w);
	kind_unref(host);
	kind_unref(alone);
}

static void those_used_last_are_followed(void **state)
{
	struct kinds *ks = *state;
	struct kind *host = kinds_host(ks, WARDEN_NET_NAT), *k[6];

	assert_int_equal(kind_seeds_wanted(host, 8), 8);
	for (size_t i = 0; i < ARRAY_LEN(k); i++) {
		k[i] = on(ks, 10 + i, 0);
		assert_int_equal(kind_seeds_wanted(k[i], 8), 0);
		kind_used(k[i]);
	}
	assert_int_equal(dropped_n, 2);
	assert_false(k[0]->followed || k[1]->followed);
	assert_true(k[2]->followed && k[5]->followed);
	/* Half of eight: two each for two. */
	assert_int_equal(kind_seeds_wanted(k[5], 8), 2);
	assert_int_equal(kind_seeds_wanted(k[4], 8), 2);
	assert_int_equal(kind_seeds_wanted(k[3], 8), 0);
	assert_int_equal(kind_seeds_wanted(host, 8), 4);
	assert_int_equal(kind_seeds_wanted(k[3], 16), 2);
	assert_int_equal(kind_seeds_wanted(host, 16), 8);
	assert_int_equal(kind_seeds_wanted(k[5], 1), 0);
	assert_int_equal(kind_seeds_wanted(host, 1), 1);
	kind_used(k[3]);
	assert_int_equal(kind_seeds_wanted(k[3], 8), 2);
	assert_int_equal(kind_seeds_wanted(k[4], 8), 0);
	assert_ptr_equal(kinds_hungry(ks, 8), k[3]);
	k[3]->ready = 1;
	k[3]->making = 1;
	assert_ptr_equal(kinds_hungry(ks, 8), k[5]);
	for (size_t i = 0; i < ARRAY_LEN(k); i++)
		kind_unref(k[i]);
	kind_unref(host);
}

static void not_every_kind_is_worth_it(void **state)
{
	struct kinds *ks = *state;
	struct kind *host = kinds_host(ks, WARDEN_NET_NAT), *v = on(ks, 2, 1),
		    *without = on(ks, 2, 0);

	assert_ptr_equal(v->base, without);
	kind_used(host);
	assert_null(kinds_hungry(ks, 8));
	/* Volumes are mounted into a seed that has none. */
	kind_used(v);
	assert_false(host->followed || v->followed);
	assert_ptr_equal(kinds_hungry(ks, 8), without);
	kind_unref(host);
	kind_unref(v);
	kind_unref(without);
}

static void policed_ones_are_kinds_of_their_own(void **state)
{
	struct kinds *ks = *state;
	struct kind *host = kinds_host(ks, WARDEN_NET_NAT);
	struct kind *policed = kinds_host(ks, WARDEN_NET_POLICED);

	assert_ptr_not_equal(host, policed);
	assert_int_equal(kind_seeds_wanted(policed, 8), 0);
	kind_used(policed);
	assert_true(policed->followed);
	assert_int_equal(kind_seeds_wanted(policed, 8), 2);
	assert_int_equal(kind_seeds_wanted(host, 8), 6);
	assert_ptr_equal(kinds_hungry(ks, 8), policed);
	kind_unref(host);
	kind_unref(policed);
}

static void layers_that_go_take_their_kinds_along(void **state)
{
	static const uint64_t second = 2, first = 1, other = 99;
	struct kinds *ks = *state;
	struct kind *a = on(ks, 2, 0), *b = on(ks, 3, 0);

	kind_used(a);
	kind_used(b);
	kinds_drop_layers(ks, &other, 1);
	assert_int_equal(dropped_n, 0);
	kinds_drop_layers(ks, &second, 1);
	assert_true(!a->followed && b->followed && dropped_n == 1);
	kind_used(a);
	kinds_drop_layers(ks, &first, 1);
	assert_true(!a->followed && !b->followed && dropped_n == 3);
	kind_used(a);
	kinds_drop_layers(ks, NULL, 0);
	assert_true(!a->followed && dropped_n == 4);
	kind_used(b); /* ends followed: freed with the rest */
	kind_unref(a);
	kind_unref(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_same_is_one, make, end),
		cmocka_unit_test_setup_teardown(those_used_last_are_followed, make, end),
		cmocka_unit_test_setup_teardown(not_every_kind_is_worth_it, make, end),
		cmocka_unit_test_setup_teardown(policed_ones_are_kinds_of_their_own, make, end),
		cmocka_unit_test_setup_teardown(layers_that_go_take_their_kinds_along, make, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
