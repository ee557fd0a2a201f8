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

#define QUERY	  "\x12\x34\x01\x00\0\1\0\0\0\0\0\0"
#define ANSWER(n) "\x12\x34\x81\x80\0\1\0" n "\0\0\0\0"
#define NAME	  "\3WWW\7example\3com\0"
#define A_IN	  "\0\1\0\1"
#define TO_NAME	  "\xc0\x0c"
#define ADDRESS	  A_IN "\0\0\0\x3c\0\4"

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
		{VIEW(QUERY NAME "\0\1\0\3")},			      /* chaos */
		{VIEW("\x12\x34\x81\x00\0\1\0\0\0\0\0\0" NAME A_IN)}, /* a response */
		{VIEW("\x12\x34\x29\x00\0\1\0\0\0\0\0\0" NAME A_IN)}, /* an update */
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
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE;
		struct dns_query q;

		assert_int_equal(dns_parse_query(cases[i].message, &q, &e), -EPROTO);
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

static int parse_answer(struct view message, struct dns_answer *a, struct dns_address *room,
			size_t n)
{
	struct dns_query q = asked(VIEW(QUERY NAME A_IN));
	struct err e = ERR_NONE;

	*a = (struct dns_answer){.addresses = room, .room = n};
	return dns_parse_answer(message, &q, a, &e);
}

static void addresses_of_the_name_are_found(void **state)
{
	struct dns_address room[4];
	struct dns_answer a;

	assert_int_equal(parse_answer(VIEW(ANSWER("\2") NAME A_IN TO_NAME ADDRESS
					   "\xc0\0\2\1" TO_NAME ADDRESS "\xc0\0\2\2"),
				      &a, room, 4),
			 0);
	assert_int_equal(a.n, 2);
	assert_false(a.more);
	assert_false(room[0].v6);
	assert_memory_equal(room[1].bytes, "\xc0\0\2\2", 4);
	assert_int_equal(room[0].ttl, 60);
}

static void names_that_stand_for_it_are_followed_in_any_order(void **state)
{
	struct dns_address room[4];
	struct dns_answer a;

	/* The address of b first, then www -> a, a -> b. */
	assert_int_equal(
		parse_answer(VIEW(ANSWER("\3") NAME A_IN "\1b\0" ADDRESS "\xc0\0\2\1"
							 "\1a\0\0\5\0\1\0\0\0\5\0\3\1b\0" TO_NAME
							 "\0\5\0\1\0\0\0\7\0\3\1a\0"),
			     &a, room, 4),
		0);
	assert_int_equal(a.n, 1);
	assert_int_equal(a.ttl_min, 5);
}

static void addresses_of_other_names_are_left_out(void **state)
{
	struct dns_address room[4];
	struct dns_answer a;

	assert_int_equal(
		parse_answer(VIEW(ANSWER("\2") NAME A_IN "\4evil\0" ADDRESS
							 "\x7f\0\0\1" TO_NAME ADDRESS "\xc0\0\2\1"),
			     &a, room, 4),
		0);
	assert_int_equal(a.n, 1);
	assert_memory_equal(room[0].bytes, "\xc0\0\2\1", 4);
}

static void more_addresses_than_there_is_room_for_are_told(void **state)
{
	struct dns_address room[1];
	struct dns_answer a;

	assert_int_equal(parse_answer(VIEW(ANSWER("\2") NAME A_IN TO_NAME ADDRESS
					   "\xc0\0\2\1" TO_NAME ADDRESS "\xc0\0\2\2"),
				      &a, room, 1),
			 0);
	assert_int_equal(a.n, 1);
	assert_true(a.more);
}

static void an_answer_to_something_else_is_refused(void **state)
{
	static const struct {
		struct view message;
	} cases[] = {
		{VIEW("\x12\x35\x81\x80\0\1\0\0\0\0\0\0" NAME A_IN)}, /* another id */
		{VIEW(QUERY NAME A_IN)},			      /* no answer */
		{VIEW(ANSWER("\0") "\3www\7example\3org\0" A_IN)},    /* another name */
		{VIEW(ANSWER("\0") NAME "\0\x1c\0\1")},		      /* another type */
		{VIEW("\x12\x34\x81\x80\0\0\0\0\0\0\0\0")},
		{VIEW(ANSWER("\1") NAME A_IN)}, /* cut off */
		{VIEW(ANSWER("\1") NAME A_IN TO_NAME A_IN "\0\0\0\x3c\0\5"
							  "abcde")},
		{VIEW(ANSWER("\1") NAME A_IN TO_NAME A_IN "\0\0\0\x3c\xff\xff"
							  "abcd")},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct dns_address room[2];
		struct dns_answer a;

		assert_int_equal(parse_answer(cases[i].message, &a, room, 2), -EPROTO);
	}
}

static void a_refusal_repeats_the_question(void **state)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(512);
	struct view query = VIEW(QUERY NAME A_IN);
	struct dns_answer a;

	assert_int_equal(dns_put_refusal(query, DNS_NXDOMAIN, false, &b), 0);
	assert_int_equal(parse_answer(buf_view(&b), &a, NULL, 0), 0);
	assert_int_equal(a.header.rcode, DNS_NXDOMAIN);
	assert_int_equal(b.len, query.len);
	buf_clear(&b);
	assert_int_equal(dns_put_refusal(query, DNS_NOERROR, true, &b), 0);
	assert_int_equal(parse_answer(buf_view(&b), &a, NULL, 0), 0);
	assert_true(a.header.truncated);
}

static void a_refusal_of_junk_has_no_question(void **state)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(512);

	assert_int_equal(dns_put_refusal(VIEW(QUERY "\xc0\x0c"), DNS_FORMERR, false, &b), 0);
	assert_int_equal(b.len, DNS_HEADER);
	assert_int_equal(dns_put_refusal(VIEW("short"), DNS_FORMERR, false, &b), -EPROTO);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_question_is_read),
		cmocka_unit_test(an_opt_record_says_what_the_client_takes),
		cmocka_unit_test(bytes_of_no_host_name_are_written_out),
		cmocka_unit_test(what_is_no_query_is_refused),
		cmocka_unit_test(a_name_has_255_bytes_at_most),
		cmocka_unit_test(addresses_of_the_name_are_found),
		cmocka_unit_test(names_that_stand_for_it_are_followed_in_any_order),
		cmocka_unit_test(addresses_of_other_names_are_left_out),
		cmocka_unit_test(more_addresses_than_there_is_room_for_are_told),
		cmocka_unit_test(an_answer_to_something_else_is_refused),
		cmocka_unit_test(a_refusal_repeats_the_question),
		cmocka_unit_test(a_refusal_of_junk_has_no_question),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
