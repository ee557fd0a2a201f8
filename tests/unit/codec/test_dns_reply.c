/*
 * What is kept of answers, honest and otherwise, and what clients see of it.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/dns_reply.h"

#define QUERY		"\x12\x34\x01\x00\0\1\0\0\0\0\0\0"
#define ANSWER(n, a)	"\x12\x34\x81\x80\0\1\0" n "\0" a "\0\0"
#define NOTHING(a)	"\x12\x34\x81\x83\0\1\0\0\0" a "\0\0"
#define NAME		"\3WWW\7example\3com\0"
#define TO_NAME		"\xc0\x0c"
#define TO_EXAMPLE	"\xc0\x10"
#define A_IN		"\0\1\0\1"
#define HTTPS_IN	"\0\x41\0\1"
#define ADDRESS		A_IN "\0\0\0\x3c\0\4"
#define CNAME(ttl, len) "\0\5\0\1\0\0\0" ttl "\0" len

static struct dns_asker asker(struct view query)
{
	struct dns_asker a;
	struct dns_query q;
	struct err e = ERR_NONE;

	assert_int_equal(dns_parse_query(query, &q, &e), 0);
	dns_asker_of(query, &q, &a);
	return a;
}

static int keep(struct view question, struct view answer, struct buf *kept, struct dns_reply *ret)
{
	struct dns_asker a = asker(question);
	struct err e = ERR_NONE;

	return dns_reply_read(answer, &a, 0x1234, kept, ret, &e);
}

struct seen {
	struct dns_address addresses[8];
	size_t n;
	char names[4][DNS_NAME_TEXT];
	size_t names_n;
	uint8_t unwanted; /* last byte */
};

static bool see_address(void *arg, const struct dns_address *a)
{
	struct seen *s = arg;

	if (s->unwanted && a->bytes[3] == s->unwanted)
		return false;
	if (s->n < ARRAY_LEN(s->addresses))
		s->addresses[s->n] = *a;
	s->n++;
	return true;
}

static bool see_name(void *arg, const char *name)
{
	struct seen *s = arg;

	assert_true(s->names_n < ARRAY_LEN(s->names));
	strcpy(s->names[s->names_n++], name);
	return true;
}

static struct seen look(struct view kept)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(DNS_MESSAGE_MAX);
	struct dns_asker a = asker(VIEW(QUERY NAME A_IN));
	struct seen s = {0};

	assert_true(dns_reply_aliases(kept, see_name, &s));
	assert_int_equal(dns_reply_put(kept, 0, &a, DNS_MESSAGE_MAX, see_address, &s, &b), 0);
	return s;
}

static void addresses_of_the_name_are_kept(void **state)
{
	osb_cleanup(buf_done) struct buf kept = BUF_INIT(DNS_MESSAGE_MAX);
	struct dns_reply reply;
	struct seen s;

	assert_int_equal(keep(VIEW(QUERY NAME A_IN),
			      VIEW(ANSWER("\2", "\0") NAME A_IN TO_NAME ADDRESS
				   "\xc6\x12\2\1" TO_NAME ADDRESS "\xc6\x12\2\2"),
			      &kept, &reply),
			 0);
	assert_int_equal(reply.ttl_s, 60);
	s = look(buf_view(&kept));
	assert_int_equal(s.n, 2);
	assert_int_equal(s.names_n, 0);
	assert_memory_equal(s.addresses[1].bytes, "\xc6\x12\2\2", 4);
	assert_int_equal(s.addresses[0].ttl, 60);
}

/* The address of b first, then a -> b, www -> a. */
static void names_are_put_in_order(void **state)
{
	osb_cleanup(buf_done) struct buf kept = BUF_INIT(DNS_MESSAGE_MAX);
	struct dns_reply reply;
	struct seen s;

	assert_int_equal(keep(VIEW(QUERY NAME A_IN),
			      VIEW(ANSWER("\3", "\0") NAME A_IN
				   "\1b" TO_EXAMPLE ADDRESS "\xc6\x12\2\1"
				   "\1a\0" CNAME("\5", "\4") "\1b" TO_EXAMPLE TO_NAME CNAME(
					   "\7", "\3") "\1a\0"),
			      &kept, &reply),
			 0);
	assert_int_equal(reply.ttl_s, 5);
	s = look(buf_view(&kept));
	assert_int_equal(s.n, 1);
	assert_int_equal(s.names_n, 2);
	assert_string_equal(s.names[0], "a");
	assert_string_equal(s.names[1], "b.example.com");
}

static void records_of_others_are_left_out(void **state)
{
	osb_cleanup(buf_done) struct buf kept = BUF_INIT(DNS_MESSAGE_MAX);
	struct dns_reply reply;
	struct seen s;

	/* Of another name, of another type, of another class, and in the other sections. */
	assert_int_equal(keep(VIEW(QUERY NAME A_IN),
			      VIEW("\x12\x34\x81\x80\0\1\0\4\0\1\0\1" NAME A_IN "\4evil\0" ADDRESS
				   "\x7f\0\0\1" TO_NAME ADDRESS "\xc6\x12\2\1" TO_NAME
				   "\0\x10\0\1\0\0\0\0\0\2\1x" TO_NAME
				   "\0\1\0\3\0\0\0\0\0\4\1\2\3\4" TO_NAME ADDRESS
				   "\xc6\x12\2\5" TO_NAME ADDRESS "\xc6\x12\2\6"),
			      &kept, &reply),
			 0);
	s = look(buf_view(&kept));
	assert_int_equal(s.n, 1);
	assert_memory_equal(s.addresses[0].bytes, "\xc6\x12\2\1", 4);
	assert_int_equal(reply.ttl_s, 60);
}

#define SOA                                                                                        \
	TO_EXAMPLE "\0\6\0\1\0\0\1\0\0\x1d\2ns" TO_EXAMPLE "\1h" TO_EXAMPLE                        \
		   "\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\x1e"

static void nothing_is_kept_as_long_as_its_zone_says(void **state)
{
	static const struct {
		struct view answer;
		uint32_t ttl;
	} cases[] = {
		{VIEW(NOTHING("\1") NAME A_IN SOA), 30},
		{VIEW(ANSWER("\0", "\1") NAME A_IN SOA), 30},
		{VIEW(NOTHING("\0") NAME A_IN), 0},
		{VIEW(ANSWER("\1", "\1") NAME A_IN TO_NAME CNAME("\7", "\3") "\1a\0" SOA), 7},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		osb_cleanup(buf_done) struct buf kept = BUF_INIT(DNS_MESSAGE_MAX);
		struct dns_reply reply;

		assert_int_equal(keep(VIEW(QUERY NAME A_IN), cases[i].answer, &kept, &reply), 0);
		assert_int_equal(reply.ttl_s, cases[i].ttl);
		assert_int_equal(look(buf_view(&kept)).n, 0);
	}
}

static void an_answer_to_something_else_is_told(void **state)
{
	static const struct {
		struct view answer;
		int code;
	} cases[] = {
		{VIEW("\x12\x35\x81\x80\0\1\0\0\0\0\0\0" NAME A_IN), -ENOMSG}, /* another id */
		{VIEW(QUERY NAME A_IN), -ENOMSG},			       /* no answer */
		{VIEW(ANSWER("\0", "\0") "\3www\7example\3org\0" A_IN), -ENOMSG},
		{VIEW(ANSWER("\0", "\0") NAME "\0\x1c\0\1"), -ENOMSG},
		{VIEW("\x12\x34\x81\x80\0\0\0\0\0\0\0\0"), -ENOMSG},
		{VIEW("\x12\x34\x81"), -ENOMSG},
		{VIEW(ANSWER("\1", "\0") NAME A_IN), -EPROTO}, /* cut off */
		{VIEW(ANSWER("\1", "\0") NAME A_IN TO_NAME A_IN "\0\0\0\x3c\0\5abcde"), -EPROTO},
		{VIEW(ANSWER("\1", "\0") NAME A_IN TO_NAME A_IN "\0\0\0\x3c\xff\xff"
								"abcd"),
		 -EPROTO},
		/* www stands for itself, and for a name that stands for it. */
		{VIEW(ANSWER("\1", "\0") NAME A_IN TO_NAME CNAME("\5", "\2") TO_NAME), -EPROTO},
		{VIEW(ANSWER("\2", "\0") NAME A_IN TO_NAME CNAME("\5", "\3") "\1a\0\1a\0" CNAME(
			 "\5", "\2") TO_NAME),
		 -EPROTO},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		osb_cleanup(buf_done) struct buf kept = BUF_INIT(DNS_MESSAGE_MAX);
		struct dns_reply reply;

		assert_int_equal(keep(VIEW(QUERY NAME A_IN), cases[i].answer, &kept, &reply),
				 cases[i].code);
		assert_int_equal(kept.len, 0);
	}
}

static void a_server_that_fails_says_only_that(void **state)
{
	osb_cleanup(buf_done) struct buf kept = BUF_INIT(DNS_MESSAGE_MAX);
	struct dns_reply reply;

	assert_int_equal(keep(VIEW(QUERY NAME A_IN),
			      VIEW("\x12\x34\x81\x82\0\1\0\0\0\0\0\0" NAME A_IN), &kept, &reply),
			 0);
	assert_int_equal(reply.rcode, DNS_SERVFAIL);
	assert_int_equal(kept.len, 0);
	assert_int_equal(keep(VIEW(QUERY NAME A_IN),
			      VIEW("\x12\x34\x83\x80\0\1\0\0\0\0\0\0" NAME A_IN), &kept, &reply),
			 0);
	assert_true(reply.truncated);
}

static void services_come_without_addresses(void **state)
{
	osb_cleanup(buf_done) struct buf kept = BUF_INIT(DNS_MESSAGE_MAX);
	struct dns_reply reply;
	struct view alpn = VIEW("\0\1\0\3\2h2\0\3\0\2\1\xbb");

	/* alpn=h2 port=443 ipv4hint ech ipv6hint */
	assert_int_equal(
		keep(VIEW(QUERY NAME HTTPS_IN),
		     VIEW(ANSWER("\1", "\0") NAME HTTPS_IN TO_NAME HTTPS_IN
			  "\0\0\0\x3c\0\x33"
			  "\0\1\0\0\1\0\3\2h2\0\3\0\2\1\xbb\0\4\0\4\1\2\3\4\0\5\0\3ech\0\6\0\x10"
			  "0123456789abcdef"),
		     &kept, &reply),
		0);
	assert_int_equal(view_find_view(buf_view(&kept), VIEW("0123456789")), kept.len);
	assert_int_equal(view_find_view(buf_view(&kept), VIEW("ech")), kept.len);
	assert_int_equal(view_find_view(buf_view(&kept), VIEW("\1\2\3\4")), kept.len);
	assert_int_equal(view_find_view(buf_view(&kept), alpn), kept.len - alpn.len);
	/* One that must be understood with its addresses goes. */
	buf_clear(&kept);
	assert_int_equal(keep(VIEW(QUERY NAME HTTPS_IN),
			      VIEW(ANSWER("\1", "\0") NAME HTTPS_IN TO_NAME HTTPS_IN
				   "\0\0\0\x3c\0\x11\0\1\0\0\0\0\2\0\4\0\4\0\4\1\2\3\4"),
			      &kept, &reply),
			 0);
	assert_memory_equal(buf_view(&kept).p + 6, "\0\0", 2);
}

static void mail_hosts_stay_legible(void **state)
{
	osb_cleanup(buf_done) struct buf kept = BUF_INIT(DNS_MESSAGE_MAX);
	struct dns_reply reply;
	struct view end = VIEW("\0\x0a\2mx" TO_EXAMPLE);

	/* A name in the data points to where nothing will be. */
	assert_int_equal(keep(VIEW(QUERY NAME "\0\x0f\0\1"),
			      VIEW(ANSWER("\2", "\0") NAME
				   "\0\x0f\0\1\2mx" TO_EXAMPLE ADDRESS "\1\2\3\4" TO_NAME
				   "\0\x0f\0\1\0\0\0\x3c\0\4\0\x0a\xc0\x21"),
			      &kept, &reply),
			 0);
	assert_int_equal(view_find_view(buf_view(&kept), end), kept.len - end.len);
}

static void a_client_sees_its_own_question(void **state)
{
	osb_cleanup(buf_done) struct buf kept = BUF_INIT(DNS_MESSAGE_MAX);
	osb_cleanup(buf_done) struct buf out = BUF_INIT(DNS_MESSAGE_MAX);
	struct view other = VIEW("\xab\xcd\x00\x10\0\1\0\0\0\0\0\1\3wWw\7exAMPle\3Com\0" A_IN
				 "\0\0\x29\x10\0\0\0\0\0\0\0");
	struct dns_asker a = asker(other);
	struct seen s = {.unwanted = 2};
	struct dns_reply reply;

	assert_int_equal(keep(VIEW(QUERY NAME A_IN),
			      VIEW(ANSWER("\2", "\0") NAME A_IN TO_NAME ADDRESS
				   "\xc6\x12\2\1" TO_NAME ADDRESS "\xc6\x12\2\2"),
			      &kept, &reply),
			 0);
	assert_int_equal(dns_reply_put(buf_view(&kept), 10, &a, 512, see_address, &s, &out), 0);
	assert_int_equal(
		view_find_view(buf_view(&out),
			       VIEW("\xab\xcd\x80\x90\0\1\0\1\0\0\0\1\3wWw\7exAMPle\3Com\0" A_IN
					    TO_NAME A_IN "\0\0\0\x32\0\4\xc6\x12\2\1\0\0\x29")),
		0);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.addresses[0].ttl, 50);
}

static void what_does_not_fit_is_truncated(void **state)
{
	osb_cleanup(buf_done) struct buf message = BUF_INIT(DNS_MESSAGE_MAX);
	osb_cleanup(buf_done) struct buf kept = BUF_INIT(DNS_MESSAGE_MAX);
	osb_cleanup(buf_done) struct buf out = BUF_INIT(DNS_MESSAGE_MAX);
	struct dns_asker a = asker(VIEW(QUERY NAME A_IN));
	struct dns_header header;
	struct dns_reply reply;
	struct seen s = {0};
	struct err e = ERR_NONE;

	assert_int_equal(buf_append_view(&message, VIEW(ANSWER("\x64", "\0") NAME A_IN)), 0);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(buf_append_view(&message, VIEW(TO_NAME ADDRESS "\xc6\x12\2\1")),
				 0);
	assert_int_equal(keep(VIEW(QUERY NAME A_IN), buf_view(&message), &kept, &reply), 0);
	assert_int_equal(dns_reply_put(buf_view(&kept), 0, &a, 512, see_address, &s, &out), 0);
	assert_int_equal(dns_parse_header(buf_view(&out), &header, &e), 0);
	assert_true(header.truncated);
	assert_int_equal(header.answers, (512 - DNS_HEADER - 21) / 16);
	assert_int_equal(out.len, DNS_HEADER + 21 + header.answers * 16);
	buf_clear(&out);
	assert_int_equal(dns_reply_put(buf_view(&kept), 0, &a, 4096, see_address, &s, &out), 0);
	assert_int_equal(dns_parse_header(buf_view(&out), &header, &e), 0);
	assert_false(header.truncated);
	assert_int_equal(header.answers, 100);
}

static void nothing_of_a_client_is_passed_on(void **state)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(DNS_MESSAGE_MAX);
	/* With a client subnet. */
	struct dns_asker a =
		asker(VIEW("\x12\x34\x01\x00\0\1\0\0\0\0\0\1" NAME A_IN
			   "\0\0\x29\x10\0\0\0\0\0\0\x0b\0\x08\0\7\0\1\x18\0\x0a\0\1"));

	assert_int_equal(dns_put_query(&a, 0x7788, /* edns= */ true, &out), 0);
	assert_true(view_eq(buf_view(&out), VIEW("\x77\x88\x01\x00\0\1\0\0\0\0\0\1" NAME A_IN
						 "\0\0\x29\4\xd0\0\0\0\0\0\0")));
	buf_clear(&out);
	assert_int_equal(dns_put_query(&a, 0x7788, /* edns= */ false, &out), 0);
	assert_true(view_eq(buf_view(&out), VIEW("\x77\x88\x01\x00\0\1\0\0\0\0\0\0" NAME A_IN)));
}

static void askers_of_the_same_have_one_key(void **state)
{
	char one[DNS_KEY_MAX], two[DNS_KEY_MAX];
	struct dns_asker a = asker(VIEW(QUERY NAME A_IN));
	struct dns_asker b =
		asker(VIEW("\x55\x34\x01\x00\0\1\0\0\0\0\0\0\3www\7EXAMPLE\3com\0" A_IN));
	struct dns_asker c = asker(VIEW(QUERY NAME "\0\x1c\0\1"));

	assert_true(view_eq(dns_asker_key(&a, one), dns_asker_key(&b, two)));
	assert_false(view_eq(dns_asker_key(&a, one), dns_asker_key(&c, two)));
}

static void a_refusal_repeats_the_question(void **state)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(512);
	struct dns_asker a = asker(
		VIEW("\x12\x34\x01\x00\0\1\0\0\0\0\0\1" NAME A_IN "\0\0\x29\x10\0\0\1\0\0\0\0"));

	assert_int_equal(dns_reply_refuse(&a, DNS_BADVERS, &out), 0);
	assert_true(view_eq(buf_view(&out), VIEW("\x12\x34\x81\x80\0\1\0\0\0\0\0\1" NAME A_IN
						 "\0\0\x29\4\xd0\1\0\0\0\0\0")));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_of_the_name_are_kept),
		cmocka_unit_test(names_are_put_in_order),
		cmocka_unit_test(records_of_others_are_left_out),
		cmocka_unit_test(nothing_is_kept_as_long_as_its_zone_says),
		cmocka_unit_test(an_answer_to_something_else_is_told),
		cmocka_unit_test(a_server_that_fails_says_only_that),
		cmocka_unit_test(services_come_without_addresses),
		cmocka_unit_test(mail_hosts_stay_legible),
		cmocka_unit_test(a_client_sees_its_own_question),
		cmocka_unit_test(what_does_not_fit_is_truncated),
		cmocka_unit_test(nothing_of_a_client_is_passed_on),
		cmocka_unit_test(askers_of_the_same_have_one_key),
		cmocka_unit_test(a_refusal_repeats_the_question),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
