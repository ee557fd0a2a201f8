/*
 * server/image_config.c - Env, User, WorkingDir, Entrypoint and Cmd of an image, bounded.
 */
#include "server/image_config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "codec/oci_image.h"
#include "server/sandbox.h"

#define ARENA_MAX ((size_t)32 << 20)
#define ENV_MAX	  2048
#define WORDS_MAX 1024

static int read_env(const struct oci_strings *env, struct sandbox_root *root, struct err *e)
{
	if (env->n > ENV_MAX)
		return err_set(e, -E2BIG, "the image sets more than %d variables", ENV_MAX);
	for (size_t i = 0; i < env->n; i++) {
		struct view value = env->v[i], name;

		if (view_has(value, '\0') || !view_has(value, '='))
			continue;
		if (view_split(&value, '=', &name) && name.len > 0 &&
		    !view_is(name, "OPENSANDBOX_LIFECYCLE"))
			pairs_set(&root->env, name, value);
	}
	return 0;
}

static int read_words(const struct oci_strings *words, struct strv *ret, struct err *e)
{
	if (words->n > WORDS_MAX)
		return err_set(e, -E2BIG, "the image's command has more than %d words", WORDS_MAX);
	for (size_t i = 0; i < words->n; i++)
		if (!view_has(words->v[i], '\0'))
			strv_add_view(ret, words->v[i]);
	return 0;
}

static void read_place(const struct oci_config *c, struct sandbox_root *root)
{
	struct view user = c->user, dir = c->working_dir;

	if (user.len && !view_has(user, '\0'))
		root->user = mem_strndup(user.p, user.len);
	if (dir.len && !view_has(dir, '\0'))
		root->cwd = mem_printf("%s" VIEW_FMT, dir.p[0] == '/' ? "" : "/", VIEW_ARG(dir));
}

int image_config_read(struct view text, struct sandbox_root *root, struct image_facts *ret,
		      struct err *e)
{
	osb_cleanup(arena_done) struct arena a;
	struct oci_config c = {0};
	int r;

	arena_init(&a, ARENA_MAX);
	r = oci_config_parse(text, &a, &c, e);
	if (r < 0)
		return err_ctx(e, "the image's configuration");
	*ret = (struct image_facts){.has_volumes = c.volumes.n > 0};
	snprintf(ret->os, sizeof(ret->os), VIEW_FMT, VIEW_ARG(view_first(c.platform.os, 31)));
	snprintf(ret->arch, sizeof(ret->arch), VIEW_FMT, VIEW_ARG(view_first(c.platform.arch, 31)));
	read_place(&c, root);
	r = read_env(&c.env, root, e);
	if (r == 0)
		r = read_words(&c.entrypoint, &root->start, e);
	return r == 0 ? read_words(&c.cmd, &root->start, e) : r;
}
