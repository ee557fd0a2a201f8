/*
 * A query that is understood has a legible name; a refusal of it is an answer to it.  The same
 * bytes, taken for an answer, leave something that can be put to a client, and that can be
 * read again as what it is.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/dns_reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static bool any_address(void *arg, const struct dns_address *a)
{
	++*(size_t *)arg;
	return a->bytes[0] != 127;
}

static bool any_name(void *arg, const char *name)
{
	++*(size_t *)arg;
	return strlen(name) < DNS_NAME_TEXT;
}

static void check_kept(struct view kept, const struct dns_asker *a, uint32_t ttl)
{
	osb_cleanup(buf_done) struct buf again = BUF_INIT(DNS_MESSAGE_MAX);
	osb_cleanup(buf_done) struct buf out = BUF_INIT(DNS_MESSAGE_MAX);
	struct err e = ERR_NONE;
	struct dns_reply reply;
	size_t names = 0, addresses = 0;

	must(dns_reply_aliases(kept, any_name, &names) && names <= 16);
	must(dns_reply_put(kept, 1, a, DNS_UDP_MIN, any_address, &addresses, &out) == 0);
	must(out.len <= DNS_UDP_MIN);
	/* What was kept is what is kept of it. */
	must(dns_reply_read(kept, a, 0, &again, &reply, &e) == 0);
	must(reply.ttl_s == ttl && view_eq(buf_view(&again), kept));
}

static void read_as_answer(struct view message, uint16_t type)
{
	osb_cleanup(buf_done) struct buf kept = BUF_INIT(DNS_MESSAGE_MAX);
	struct dns_asker a = {.question_len = 9, .question = "\1a\1b\0\0\1\0\1", .udp_size = 512};
	struct dns_reply reply;
	struct err e = ERR_NONE;
	uint16_t id = 0;

	a.question[6] = (char)type;
	if (message.len >= 2)
		id = (uint16_t)((uint8_t)message.p[0] << 8 | (uint8_t)message.p[1]);
	if (dns_reply_read(message, &a, id, &kept, &reply, &e) == 0 && kept.len > 0)
		check_kept(buf_view(&kept), &a, reply.ttl_s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(DNS_MESSAGE_MAX);
	osb_cleanup(buf_done) struct buf kept = BUF_INIT(DNS_MESSAGE_MAX);
	struct view message = view_mem(data, size);
	struct dns_reply reply;
	struct dns_asker a;
	struct err e = ERR_NONE;
	struct dns_query q;

	if (dns_parse_query(message, &q, &e) == 0) {
		must(strlen(q.name) < DNS_NAME_TEXT && q.question_end <= size);
		dns_asker_of(message, &q, &a);
		must(dns_reply_refuse(&a, DNS_NXDOMAIN, &b) == 0);
		must(dns_reply_read(buf_view(&b), &a, a.id, &kept, &reply, &e) == 0);
		must(reply.rcode == DNS_NXDOMAIN && reply.ttl_s == 0);
	} else if (size >= DNS_HEADER) {
		must(dns_put_failure(message, DNS_FORMERR, &b) == 0);
	}
	read_as_answer(message, DNS_A);
	read_as_answer(message, DNS_MX);
	read_as_answer(message, DNS_HTTPS);
	return 0;
}
