/*
 * fuzz_rfc3339.c - points in time as text.
 *
 * Invariants: whatever is read can be written and read again as the same point; whatever number is
 * written can be read back.
 */
#include <assert.h>
#include <stdint.h>

#include "base/bytes.h"
#include "codec/rfc3339.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_ns(int64_t ns)
{
	char text[RFC3339_MAX];
	int64_t back;
	bool ok;

	rfc3339_format(ns, text);
	ok = rfc3339_parse(view_of(text), &back);
	assert(ok && back == ns);
}

static void check_s(int64_t s)
{
	char text[RFC3339_MAX];
	int64_t back;
	bool ok;

	rfc3339_format_http(s, text);
	ok = rfc3339_parse_http(view_of(text), &back);
	assert(ok);
	/* Years beyond four digits are clamped. */
	assert(back == s || s < -62167219200 || s > 253402300799);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int64_t t;

	if (rfc3339_parse(view_mem(data, size), &t))
		check_ns(t);
	if (rfc3339_parse_http(view_mem(data, size), &t))
		check_s(t);
	if (size >= 8) {
		t = (int64_t)bytes_get_be64(data);
		check_ns(t);
		check_s(t);
		check_s(t >> 28);
	}
	return 0;
}
