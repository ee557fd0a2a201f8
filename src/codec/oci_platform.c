/*
 * codec/oci_platform.c - which image of an index a machine can run.
 */
#include <errno.h>
#include <stdio.h>

#include "base/err.h"
#include "codec/oci_image.h"

#define UNFIT (-1)

/* Names that people and tools use for what Go calls otherwise. */
static struct view arch_name(struct view arch)
{
	static const struct {
		const char *alias, *name;
	} aliases[] = {
		{"x86_64", "amd64"}, {"x86-64", "amd64"}, {"aarch64", "arm64"},
		{"armhf", "arm"},    {"armel", "arm"},	  {"i386", "386"},
	};

	for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
		if (view_is(arch, aliases[i].alias))
			return view_of(aliases[i].name);
	return arch;
}

/* "v8" is 8, and so is "8"; what an absent variant means depends on the architecture.  UNFIT for
 * other words. */
static int variant_level(struct view arch, struct view variant)
{
	if (variant.len == 0)
		return view_is(arch, "arm") ? 7 : view_is(arch, "arm64") ? 8 : 1;
	if (view_starts(variant, VIEW("v")))
		variant = view_skip(variant, 1);
	if (variant.len != 1 || variant.p[0] < '1' || variant.p[0] > '9')
		return UNFIT;
	return variant.p[0] - '0';
}

/* UNFIT, 0 for an entry that does not say, or the better the larger. */
static int fitness(const struct oci_platform *has, const struct oci_platform *want)
{
	struct view arch = arch_name(want->arch);
	int level;

	if (has->os.len == 0 && has->arch.len == 0)
		return 0;
	if (!view_eq(has->os, want->os) || !view_eq(arch_name(has->arch), arch))
		return UNFIT;
	level = variant_level(arch, has->variant);
	return level > variant_level(arch, want->variant) ? UNFIT : level;
}

static int add_platform(const struct oci_platform *p, char *text, size_t size, size_t len)
{
	int n;

	if (p->os.len == 0 || view_is(p->os, "unknown") || len >= size)
		return 0;
	n = snprintf(text + len, size - len, "%s" VIEW_FMT "/" VIEW_FMT "%s" VIEW_FMT,
		     len > 0 ? ", " : "", VIEW_ARG(view_first(p->os, 16)),
		     VIEW_ARG(view_first(p->arch, 16)), p->variant.len > 0 ? "/" : "",
		     VIEW_ARG(view_first(p->variant, 8)));
	return n < 0 ? 0 : n;
}

static int nothing_fits(const struct oci_document *index, const struct oci_platform *want,
			struct err *e)
{
	char there[140] = "";
	size_t len = 0;

	for (size_t i = 0; i < index->items_n; i++)
		len += (size_t)add_platform(&index->items[i].platform, there, sizeof(there), len);
	return err_set(e, -EOPNOTSUPP,
		       "the image is not there for " VIEW_FMT "/" VIEW_FMT "%s" VIEW_FMT "; %s%s",
		       VIEW_ARG(want->os), VIEW_ARG(want->arch), want->variant.len > 0 ? "/" : "",
		       VIEW_ARG(want->variant), len > 0 ? "it is there for " : "it names none",
		       there);
}

int oci_index_choose(const struct oci_document *index, const struct oci_platform *want,
		     const struct oci_descriptor **ret, struct err *e)
{
	const struct oci_descriptor *best = NULL;
	int best_fitness = UNFIT;

	for (size_t i = 0; i < index->items_n; i++) {
		const struct oci_descriptor *d = &index->items[i];
		int f = fitness(&d->platform, want);

		if ((d->media != OCI_MANIFEST && d->media != OCI_INDEX) || f <= best_fitness)
			continue;
		best = d;
		best_fitness = f;
	}
	if (!best)
		return nothing_fits(index, want, e);
	*ret = best;
	return 0;
}

int oci_config_check(const struct oci_config *c, size_t layers_n, const struct oci_platform *want,
		     struct err *e)
{
	const struct oci_platform *has = &c->platform;

	if (c->diff_ids_n != layers_n)
		return err_set(e, -EBADMSG,
			       "the configuration has %zu diff_ids, the manifest %zu layers",
			       c->diff_ids_n, layers_n);
	if (fitness(has, want) == UNFIT)
		return err_set(e, -EOPNOTSUPP,
			       "the image is for " VIEW_FMT "/" VIEW_FMT ", not for " VIEW_FMT
			       "/" VIEW_FMT,
			       VIEW_ARG(has->os), VIEW_ARG(has->arch), VIEW_ARG(want->os),
			       VIEW_ARG(want->arch));
	return 0;
}
