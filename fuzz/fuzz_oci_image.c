/*
 * fuzz_oci_image.c - manifests, indexes and configurations from hostile registries.
 *
 * Invariants: every digest that is accepted is one, counts stay below their limits, a chosen entry
 * is one of the index, and every refusal has a code and a sentence.
 */
#include <assert.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "codec/oci_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_refusal(const struct err *e)
{
	assert(e->code == -EBADMSG || e->code == -EOPNOTSUPP || e->code == -EFBIG);
	assert(e->msg[0]);
}

static void check_document(struct view text, struct arena *a)
{
	struct oci_platform want = {VIEW("linux"), VIEW("amd64"), VIEW_NONE};
	const struct oci_descriptor *d = NULL;
	struct err e = ERR_NONE;
	struct oci_document doc;

	if (oci_document_parse(text, VIEW_NONE, a, &doc, &e) < 0) {
		check_refusal(&e);
		return;
	}
	assert(doc.kind == OCI_MANIFEST || doc.kind == OCI_INDEX);
	for (size_t i = 0; i < doc.items_n; i++)
		assert(image_ref_digest_valid(view_of(doc.items[i].digest)));
	if (doc.kind == OCI_MANIFEST) {
		assert(doc.items_n <= OCI_LAYERS_MAX && doc.config.media == OCI_CONFIG);
		assert(image_ref_digest_valid(view_of(doc.config.digest)));
		return;
	}
	if (oci_index_choose(&doc, &want, &d, &e) == 0)
		assert(d >= doc.items && d < doc.items + doc.items_n);
	else
		check_refusal(&e);
}

static void check_config(struct view text, struct arena *a)
{
	struct oci_platform want = {VIEW("linux"), VIEW("arm64"), VIEW("v8")};
	struct err e = ERR_NONE;
	struct oci_config c;

	if (oci_config_parse(text, a, &c, &e) < 0) {
		check_refusal(&e);
		return;
	}
	assert(c.diff_ids_n <= OCI_LAYERS_MAX);
	for (size_t i = 0; i < c.diff_ids_n; i++)
		assert(image_ref_digest_valid(view_of(c.diff_ids[i])));
	for (size_t i = 0; i < c.env.n; i++)
		assert(!view_has(c.env.v[i], '\0'));
	if (oci_config_check(&c, c.diff_ids_n, &want, &e) < 0)
		check_refusal(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a;

	arena_init(&a, 1 << 20);
	check_document(view_mem(data, size), &a);
	check_config(view_mem(data, size), &a);
	arena_done(&a);
	return 0;
}
