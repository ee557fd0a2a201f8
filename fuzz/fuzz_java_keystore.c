/*
 * A keystore that takes a certificate has it then, and takes it only once.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "codec/java_keystore.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(1u << 20), again = BUF_INIT(1u << 20);
	int r = java_keystore_add(view_mem(data, size), VIEW("a certificate of some kind"), "alias",
				  1, &out);

	if (r == 1 && java_keystore_add(buf_view(&out), VIEW("a certificate of some kind"), "alias",
					1, &again) != 0)
		abort();
	/* Unless it is there by chance, another one finds room beside it. */
	if (r == 1 &&
	    java_keystore_add(buf_view(&out), VIEW("another one"), "other", 1, &again) < 0)
		abort();
	return 0;
}
