/*
 * DNS messages of sandboxes and of resolvers, honest and otherwise.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/dns.h"

#define QUERY "\x12\x34\x01\x00\0\1\0\0\0\0\0\0"
#define NAME  "\3WWW\7example\3com\0"
#define A_IN  "\0\1\0\1"

static struct dns_query asked(struct view message)
{
	struct dns_query q;
	struct err e = ERR_NONE;

	assert_int_equal(dns_parse_query(message, &q, &e), 0);
	return q;
}

static void a_question_is_read(void **state)
{
	struct dns_query q = asked(VIEW(QUERY NAME A_IN));

	assert_string_equal(q.name, "www.example.com");
	assert_int_equal(q.type, DNS_A);
	assert_int_equal(q.header.id, 0x1234);
	assert_true(q.header.recursion_desired);
	assert_int_equal(q.udp_size, DNS_UDP_MIN);
	assert_int_equal(q.question_end, DNS_HEADER + 17 + 4);
}

static void an_opt_record_says_what_the_client_takes(void **state)
{
	struct dns_query q = asked(
		VIEW("\x12\x34\x01\x00\0\1\0\0\0\0\0\1" NAME A_IN "\0\0\x29\x10\x00\0\0\0\0\0\0"));

	assert_int_equal(q.udp_size, 4096);
	assert_true(q.edns);
	assert_false(q.dnssec_ok);
	q = asked(VIEW("\x12\x34\x01\x10\0\1\0\0\0\0\0\1" NAME A_IN "\0\0\x29\0\1\0\1\x80\0\0\0"));
	assert_int_equal(q.udp_size, DNS_UDP_MIN);
	assert_int_equal(q.edns_version, 1);
	assert_true(q.dnssec_ok);
	assert_true(q.header.checking_disabled);
}

/* "a.b" as one label must not look like two. */
static void bytes_of_no_host_name_are_written_out(void **state)
{
	struct dns_query q = asked(VIEW(QUERY "\5a.b\0\\\3com\0" A_IN));

	assert_string_equal(q.name, "a\\046b\\000\\092.com");
}

static void what_is_no_query_is_refused(void **state)
{
	static const struct {
		struct view message;
	} cases[] = {
		{VIEW_NONE},
		{VIEW("\x12\x34\x01\x00\0\1\0\0\0\0\0")},
		{VIEW(QUERY)},
		{VIEW(QUERY NAME)},
		{VIEW(QUERY NAME "\0\1\0")},
		{VIEW("\x12\x34\x81\x00\0\1\0\0\0\0\0\0" NAME A_IN)}, /* a response */
		{VIEW("\x12\x34\x01\x00\0\2\0\0\0\0\0\0" NAME A_IN NAME A_IN)},
		{VIEW("\x12\x34\x01\x00\0\0\0\0\0\0\0\0")},
		{VIEW(QUERY NAME A_IN "x")}, /* more behind it */
		{VIEW("\x12\x34\x01\x00\0\1\0\0\0\0\xff\xff" NAME A_IN)},
		{VIEW(QUERY "\x40"
			    "aaaa\0" A_IN)}, /* a long label */
		{VIEW(QUERY "\x3f"
			    "aaaa")},
		{VIEW(QUERY "\xc0\x0c" A_IN)},	  /* points at itself */
		{VIEW(QUERY "\xc0\x20" A_IN)},	  /* forwards */
		{VIEW(QUERY "\1a\xc0\x0c" A_IN)}, /* a circle */
		{VIEW(QUERY "\xc0")},
		{VIEW(QUERY "\xc0\0" A_IN)}, /* into the header */
		{VIEW(QUERY "\1a\xc0\0" A_IN)},
		{VIEW("\x12\x34\x01\x00\0\1\0\0\0\0\0\2" NAME A_IN "\0\0\x29\x10\x00\0\0\0\0\0\0"
		      "\0\0\x29\x10\x00\0\0\0\0\0\0")}, /* two OPT records */
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE;
		struct dns_query q;

		assert_int_equal(dns_parse_query(cases[i].message, &q, &e), -EPROTO);
	}
}

static void what_is_another_kind_of_query_is_told_apart(void **state)
{
	static const struct {
		struct view message;
	} cases[] = {
		{VIEW(QUERY NAME "\0\1\0\3")},			      /* chaos */
		{VIEW("\x12\x34\x29\x00\0\1\0\0\0\0\0\0" NAME A_IN)}, /* an update */
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE;
		struct dns_query q;

		assert_int_equal(dns_parse_query(cases[i].message, &q, &e), -EOPNOTSUPP);
	}
}

/* Pointers that lead to pointers cost time without end. */
static void a_name_jumps_only_so_often(void **state)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(1024);
	struct dns_wire name;
	struct err e = ERR_NONE;

	assert_int_equal(buf_append_view(&b, VIEW(QUERY "\1a\0\0")), 0);
	for (unsigned i = 0; i < 100; i++) {
		char pointer[2] = {(char)0xc0,
				   (char)(i == 0 ? DNS_HEADER : DNS_HEADER + 4 + 2 * (i - 1))};
		size_t at = b.len;

		assert_int_equal(buf_append(&b, pointer, 2), 0);
		assert_int_equal(dns_read_wire(buf_view(&b), &at, &name, &e), i < 64 ? 0 : -EPROTO);
	}
}

static void a_name_has_255_bytes_at_most(void **state)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(1024);
	struct err e = ERR_NONE;
	struct dns_query q;

	for (int labels = 126; labels <= 128; labels++) {
		buf_clear(&b);
		assert_int_equal(buf_append_view(&b, VIEW(QUERY)), 0);
		for (int i = 0; i < labels; i++)
			assert_int_equal(buf_append_view(&b, VIEW("\1a")), 0);
		assert_int_equal(buf_append_view(&b, VIEW("\0" A_IN)), 0);
		assert_int_equal(dns_parse_query(buf_view(&b), &q, &e),
				 labels <= 127 ? 0 : -EPROTO);
	}
}

static void a_failure_repeats_the_question(void **state)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(512);
	struct view query = VIEW(QUERY NAME "\0\1\0\3");

	assert_int_equal(dns_put_failure(query, DNS_REFUSED, &b), 0);
	assert_int_equal(b.len, query.len);
	assert_memory_equal(buf_view(&b).p, "\x12\x34\x81\x85\0\1\0\0\0\0\0\0", DNS_HEADER);
}

static void a_failure_of_junk_has_no_question(void **state)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(512);

	assert_int_equal(dns_put_failure(VIEW(QUERY "\xc0\x0c"), DNS_FORMERR, &b), 0);
	assert_int_equal(b.len, DNS_HEADER);
	assert_int_equal(dns_put_failure(VIEW("short"), DNS_FORMERR, &b), -EPROTO);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_question_is_read),
		cmocka_unit_test(an_opt_record_says_what_the_client_takes),
		cmocka_unit_test(bytes_of_no_host_name_are_written_out),
		cmocka_unit_test(what_is_no_query_is_refused),
		cmocka_unit_test(what_is_another_kind_of_query_is_told_apart),
		cmocka_unit_test(a_name_jumps_only_so_often),
		cmocka_unit_test(a_name_has_255_bytes_at_most),
		cmocka_unit_test(a_failure_repeats_the_question),
		cmocka_unit_test(a_failure_of_junk_has_no_question),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
