/*
 * test_digest.c - SHA-1, SHA-256, HMAC and base64 against published vectors.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/hex.h"
#include "codec/base64.h"
#include "codec/sha1.h"
#include "codec/sha256.h"

#define LONG_TEXT "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"

static void hashes_the_vectors_of_fips_180(void **state)
{
	static const struct {
		const char *text, *sha1, *sha256;
	} cases[] = {
		{"", "da39a3ee5e6b4b0d3255bfef95601890afd80709",
		 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{"abc", "a9993e364706816aba3e25717850c26c9cd0d89d",
		 "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{LONG_TEXT, "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
		 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		unsigned char hash[SHA256_BYTES];
		char text[2 * SHA256_BYTES + 1];

		sha1(view_of(cases[i].text), hash);
		hex_format(hash, SHA1_BYTES, text);
		assert_string_equal(text, cases[i].sha1);
		sha256_of(view_of(cases[i].text), hash);
		hex_format(hash, SHA256_BYTES, text);
		assert_string_equal(text, cases[i].sha256);
	}
}

static void hashes_a_million_letters_in_pieces_of_any_size(void **state)
{
	static char letters[1000000];
	char text[2 * SHA256_BYTES + 1];
	unsigned char hash[SHA256_BYTES];

	memset(letters, 'a', sizeof(letters));
	sha1(view_mem(letters, sizeof(letters)), hash);
	hex_format(hash, SHA1_BYTES, text);
	assert_string_equal(text, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");

	for (size_t step = 1; step < sizeof(letters); step = step * 7 + 1) {
		struct view rest = view_mem(letters, sizeof(letters));
		struct sha256 s;

		sha256_init(&s);
		for (; rest.len > 0; rest = view_skip(rest, step))
			sha256_add(&s, view_first(rest, step));
		sha256_done(&s, hash);
		hex_format(hash, SHA256_BYTES, text);
		assert_string_equal(
			text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	}
}

/* Padding changes its shape around the end of a block. */
static void one_piece_and_many_agree_at_every_length(void **state)
{
	char letters[200];

	memset(letters, 'x', sizeof(letters));
	for (size_t n = 0; n <= sizeof(letters); n++) {
		unsigned char once[SHA256_BYTES], pieces[SHA256_BYTES];
		struct sha256 s;

		sha256_of(view_mem(letters, n), once);
		sha256_init(&s);
		for (size_t i = 0; i < n; i++)
			sha256_add(&s, view_mem(letters + i, 1));
		sha256_done(&s, pieces);
		assert_memory_equal(once, pieces, sizeof(once));
	}
}

static void authenticates_the_vectors_of_rfc_4231(void **state)
{
	static char key[131];
	unsigned char mac[SHA256_BYTES];
	char text[2 * SHA256_BYTES + 1];

	sha256_hmac(VIEW("Jefe"), VIEW("what do ya want for nothing?"), mac);
	hex_format(mac, sizeof(mac), text);
	assert_string_equal(text,
			    "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(key, 0xaa, sizeof(key));
	sha256_hmac(view_mem(key, sizeof(key)),
		    VIEW("Test Using Larger Than Block-Size Key - Hash Key First"), mac);
	hex_format(mac, sizeof(mac), text);
	assert_string_equal(text,
			    "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

static void writes_and_reads_the_vectors_of_rfc_4648(void **state)
{
	static const char *const cases[][2] = {
		{"", ""},
		{"f", "Zg=="},
		{"fo", "Zm8="},
		{"foo", "Zm9v"},
		{"foob", "Zm9vYg=="},
		{"fooba", "Zm9vYmE="},
		{"foobar", "Zm9vYmFy"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[BASE64_LEN(6) + 1], back[6];
		ssize_t n;

		base64_format(cases[i][0], strlen(cases[i][0]), text);
		assert_string_equal(text, cases[i][1]);
		n = base64_parse(view_of(text), back, sizeof(back));
		assert_int_equal(n, strlen(cases[i][0]));
		assert_memory_equal(back, cases[i][0], n);
	}
}

static void refuses_sloppy_base64(void **state)
{
	static const char *const cases[] = {
		"Z",	"Zg",	    "Zg=",  "=",     "====", "Z===", "Zh==",
		"Zm9=", "Zg==Zg==", "Z m=", "Zm8\n", "Zm-_", "Zg=a"};
	char back[16];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (base64_parse(view_of(cases[i]), back, sizeof(back)) != -EINVAL)
			fail_msg("accepted: %s", cases[i]);
	assert_int_equal(base64_parse(VIEW("Zm9vYmFy"), back, 5), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hashes_the_vectors_of_fips_180),
		cmocka_unit_test(hashes_a_million_letters_in_pieces_of_any_size),
		cmocka_unit_test(one_piece_and_many_agree_at_every_length),
		cmocka_unit_test(authenticates_the_vectors_of_rfc_4231),
		cmocka_unit_test(writes_and_reads_the_vectors_of_rfc_4648),
		cmocka_unit_test(refuses_sloppy_base64),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
