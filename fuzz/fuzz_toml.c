/*
 * TOML: a refusal names its line; what is accepted is a tree within its limits whose counts and
 * lines are true and whose keys are unique.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/utf8.h"
#include "codec/toml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t check_tree(const struct toml *t, unsigned lines, unsigned depth)
{
	size_t total = 0, children = 0;

	assert(depth <= 3 * TOML_MAX_DEPTH);
	assert(t->line >= 1 && t->line <= lines);
	assert(utf8_valid(t->key) && toml_kind_name(t->kind));
	if (t->kind == TOML_STRING)
		assert(utf8_valid(t->text));
	for (const struct toml *c = t->first; c; c = c->next, children++) {
		assert(t->kind == TOML_TABLE || (t->kind == TOML_ARRAY && c->key.len == 0));
		for (const struct toml *d = c->next; d && t->kind == TOML_TABLE && children < 16;
		     d = d->next)
			assert(!view_eq(c->key, d->key));
		total += 1 + check_tree(c, lines, depth + 1);
	}
	assert(children == t->len);
	return total;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view text = view_mem(data, size);
	struct toml *t = NULL;
	struct err e = ERR_NONE;
	unsigned lines = 1;
	struct arena a;

	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	arena_init(&a, 4 << 20);
	if (toml_parse(text, &a, &t, &e) < 0)
		assert((e.code == -EINVAL || e.code == -E2BIG) && e.msg[0] && !strchr(e.msg, '\n'));
	else
		assert(check_tree(t, lines, 0) <= TOML_MAX_VALUES);
	arena_done(&a);
	return 0;
}
