/*
 * fuzz_image_ref.c - references to images.
 *
 * Invariants: what is accepted has a normal form that is accepted with the same parts; nothing in
 * it could become another path or another host.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "codec/image_ref.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[IMAGE_REF_TEXT_MAX + 1];
	struct image_ref ref, again;
	struct err e = ERR_NONE;

	if (image_ref_parse(view_mem(data, size), &ref, &e) < 0) {
		assert(e.code == -EINVAL && e.msg[0]);
		return 0;
	}
	assert(ref.tag[0] || ref.digest[0]);
	assert(!strstr(ref.repository, "..") && !strpbrk(ref.repository, "@:?#%\\ ") &&
	       ref.repository[0] != '/');
	assert(!strpbrk(ref.registry, "/@?#%\\ "));
	assert(image_ref_repository_valid(view_of(ref.repository)));
	image_ref_format(&ref, text);
	assert(image_ref_parse(view_of(text), &again, &e) == 0);
	assert(memcmp(&ref, &again, sizeof(ref)) == 0);
	return 0;
}
