/*
 * codec/dns.h - DNS messages: read a question, find the addresses of an answer, refuse.
 *
 * Both sides are hostile: the sandbox writes queries, and whoever answers them may be anybody.
 * Names are kept as text in lower case, labels joined by dots, without the last one ("" is the
 * root); a byte that no host name has is written \DDD, so that no label can pass for two.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct buf;
struct err;

#define DNS_HEADER	12
#define DNS_NAME_TEXT	1024 /* 255 bytes of labels, each at most four characters, and a NUL */
#define DNS_UDP_MIN	512  /* what every client takes */
#define DNS_MESSAGE_MAX 65535

enum dns_type {
	DNS_A = 1,
	DNS_NS = 2,
	DNS_CNAME = 5,
	DNS_SOA = 6,
	DNS_PTR = 12,
	DNS_TXT = 16,
	DNS_AAAA = 28,
	DNS_SRV = 33,
	DNS_OPT = 41,
	DNS_SVCB = 64,
	DNS_HTTPS = 65,
	DNS_ANY = 255,
};

enum dns_rcode {
	DNS_NOERROR = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5,
};

struct dns_header {
	uint16_t id;
	bool response, truncated, recursion_desired;
	unsigned opcode, rcode;
	unsigned questions, answers, authorities, additionals;
};

/* A query that a resolver may be asked: one question of class IN. */
struct dns_query {
	struct dns_header header;
	char name[DNS_NAME_TEXT];
	uint16_t type;
	size_t question_end; /* offset behind the question */
	uint16_t udp_size;   /* what the client takes over UDP; at least DNS_UDP_MIN */
};

/* One record of an answer. */
struct dns_record {
	char name[DNS_NAME_TEXT];
	uint16_t type, class;
	uint32_t ttl;
	size_t data_at; /* offset of its data in the message */
	struct view data;
};

/* -EPROTO with a sentence; whatever else is wrong with what follows the question is the resolver's
 * business, but a message that claims more records than it has bytes for is refused. */
osb_must_check int dns_parse_query(struct view message, struct dns_query *ret, struct err *e);

/* The header alone: -EPROTO when there are not twelve bytes. */
osb_must_check int dns_parse_header(struct view message, struct dns_header *ret, struct err *e);

/* Reads the name at *at, which then points behind it.  Pointers lead only backwards. */
osb_must_check int dns_read_name(struct view message, size_t *at, char ret[DNS_NAME_TEXT],
				 struct err *e);

/* An address that an answer gives to the name that was asked. */
struct dns_address {
	bool v6;
	uint8_t bytes[16]; /* the first four for IPv4 */
	uint32_t ttl;
};

struct dns_answer {
	struct dns_header header;
	struct dns_address *addresses; /* the caller's, with room for `room` */
	size_t room, n;
	bool more;	  /* there were more than that */
	uint32_t ttl_min; /* of the names on the way; UINT32_MAX = none */
};

/*
 * Checks that `message` answers `q` (id, question, class) and collects the addresses that belong to
 * the name itself or to what CNAME records make of it.  Addresses of other names are not the
 * answer to this question and are left out.
 */
osb_must_check int dns_parse_answer(struct view message, const struct dns_query *q,
				    struct dns_answer *ret, struct err *e);

/* An answer to `query` with no records: its id, its question if it had a legible one, `rcode`.
 * With `truncated`, the client is to ask again over TCP. */
osb_must_check int dns_put_refusal(struct view query, enum dns_rcode rcode, bool truncated,
				   struct buf *out);
