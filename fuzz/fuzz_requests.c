/*
 * fuzz_requests.c - the small texts of lifecycle requests: quantities, labels, command lines,
 * warden messages.
 *
 * Invariants: what is accepted is in its range; words hold no more bytes than the text; an accepted
 * message is exactly its bytes and has a terminated id.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/strv.h"
#include "codec/label.h"
#include "codec/quantity.h"
#include "codec/shell_words.h"
#include "codec/warden_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_words(struct view in)
{
	struct strv words = STRV_INIT;
	size_t total = 0;

	if (shell_words_split(in, &words) == 0)
		for (size_t i = 0; i < words.len; i++)
			total += strlen(words.v[i]);
	assert(total <= in.len);
	strv_done(&words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view in = view_mem(data, size);
	struct err e = ERR_NONE;
	struct warden_msg m;
	uint64_t n;

	if (quantity_cpu_milli(in, &n))
		assert(n > 0 && n <= 1000000000);
	if (quantity_bytes(in, &n))
		assert(n > 0 && n <= UINT64_C(1) << 60);
	if (label_key_valid(in))
		assert(size > 0 && size <= 253 + 1 + 63);
	if (label_value_valid(in))
		assert(size <= 63);
	check_words(in);
	if (warden_msg_parse(in, &m, &e) == 0) {
		assert(m.size == size && memchr(m.id, '\0', sizeof(m.id)));
		assert(memcmp(warden_msg_view(&m).p, data, size) == 0);
	} else {
		assert(e.code < 0 && e.msg[0]);
	}
	return 0;
}
