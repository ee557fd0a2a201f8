/*
 * codec/dns_reply.h - answers: what is kept of an upstream server's, and how a client gets it.
 *
 * A kept answer is a message again, but holds only what was asked for: the question, the CNAME
 * records on the way from the asked name, in that order, the records of the asked type at its end,
 * and with none of those the SOA record that says for how long.  Nobody else's records are
 * in it, service records carry no addresses and no keys for hidden names, and
 * whatever points, points into the question or into CNAME records.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"
#include "codec/dns.h"

struct buf;
struct err;

#define DNS_QUESTION_MAX (DNS_NAME_WIRE + 4)
#define DNS_KEY_MAX	 (DNS_QUESTION_MAX + 1)
#define DNS_TTL_MAX	 86400 /* nothing is kept for longer */

/* Who asks, and what: all that is remembered of a query while its answer is on the way. */
struct dns_asker {
	uint16_t id, udp_size, question_len;
	bool recursion_desired, checking_disabled, edns, dnssec_ok;
	char question[DNS_QUESTION_MAX]; /* as the client wrote it: name, type, class */
};

void dns_asker_of(struct view message, const struct dns_query *q, struct dns_asker *ret);
struct view dns_asker_question(const struct dns_asker *a);
uint16_t dns_asker_type(const struct dns_asker *a);

/* Askers with the same key get the same answer. */
struct view dns_asker_key(const struct dns_asker *a, char room[DNS_KEY_MAX]);

/* The same question to an upstream server: nothing else of the client's query is passed on. */
osb_must_check int dns_put_query(const struct dns_asker *a, uint16_t id, bool edns,
				 struct buf *out);

struct dns_reply {
	unsigned rcode;
	bool truncated;
	uint32_t ttl_s; /* may be kept for so long; 0 = not at all */
};

/*
 * Reads what an upstream server says and appends what is kept of it to `out`: nothing when it is
 * truncated or neither NOERROR nor NXDOMAIN.  -ENOMSG: it is not the answer to this; -EPROTO: it
 * is malformed.
 */
osb_must_check int dns_reply_read(struct view message, const struct dns_asker *a, uint16_t id,
				  struct buf *out, struct dns_reply *ret, struct err *e);

/* The names that stand for the one that was asked, until `fn` says false; then false. */
typedef bool dns_alias_fn(void *arg, const char *name);
bool dns_reply_aliases(struct view kept, dns_alias_fn *fn, void *arg);

/* Is this address for the client? */
typedef bool dns_keep_fn(void *arg, const struct dns_address *a);

/*
 * A kept answer for a client, `age_s` after it was read, in at most `max` bytes: what does not fit
 * makes it a truncated one.
 */
osb_must_check int dns_reply_put(struct view kept, uint32_t age_s, const struct dns_asker *a,
				 size_t max, dns_keep_fn *keep, void *arg, struct buf *out);

/* An answer of nothing but a code. */
osb_must_check int dns_reply_refuse(const struct dns_asker *a, enum dns_rcode rcode,
				    struct buf *out);
