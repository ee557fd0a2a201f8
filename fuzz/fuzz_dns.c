/*
 * A query that is understood has a legible name; a refusal of it is an answer to it.  The same
 * bytes, taken for an answer, yield no more addresses than there is room for.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(DNS_MESSAGE_MAX);
	struct view message = view_mem(data, size);
	struct dns_address room[4];
	struct dns_answer a = {.addresses = room, .room = 4};
	struct err e = ERR_NONE;
	struct dns_query q;

	if (dns_parse_query(message, &q, &e) == 0) {
		must(strlen(q.name) < DNS_NAME_TEXT && q.question_end <= size);
		must(dns_put_refusal(message, DNS_NXDOMAIN, false, &b) == 0);
		must(dns_parse_answer(buf_view(&b), &q, &a, &e) == 0);
		must(a.header.rcode == DNS_NXDOMAIN && a.n == 0);
	} else if (size >= DNS_HEADER) {
		must(dns_put_refusal(message, DNS_FORMERR, true, &b) == 0);
	}
	memset(&q, 0, sizeof(q));
	memcpy(q.name, "a.b", 4);
	q.type = DNS_A;
	if (dns_parse_answer(message, &q, &a, &e) == 0)
		must(a.n <= a.room);
	return 0;
}
