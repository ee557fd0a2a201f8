/*
 * codec/dns.h - DNS messages: their parts, and the questions of a client.
 *
 * Both sides are hostile: the sandbox writes queries, and whoever answers them may be anybody.
 * As text, names are in lower case, labels joined by dots, without the last one ("" is the root);
 * a byte that no host name has is written \DDD, so that no label can pass for two.
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
#define DNS_NAME_WIRE	255
#define DNS_UDP_MIN	512 /* what every client takes */
#define DNS_MESSAGE_MAX 65535

enum dns_type {
	DNS_A = 1,
	DNS_NS = 2,
	DNS_CNAME = 5,
	DNS_SOA = 6,
	DNS_PTR = 12,
	DNS_MX = 15,
	DNS_TXT = 16,
	DNS_RP = 17,
	DNS_AFSDB = 18,
	DNS_AAAA = 28,
	DNS_SRV = 33,
	DNS_DNAME = 39,
	DNS_OPT = 41,
	DNS_RRSIG = 46,
	DNS_SVCB = 64,
	DNS_HTTPS = 65,
	DNS_META = 128, /* from here to ANY: about the server, or about all that there is */
	DNS_ANY = 255,
};

enum dns_rcode {
	DNS_NOERROR = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5,
	DNS_BADVERS = 16, /* needs an OPT record to be told */
};

struct dns_header {
	uint16_t id;
	bool response, truncated, recursion_desired, checking_disabled;
	unsigned opcode, rcode;
	unsigned questions, answers, authorities, additionals;
};

/* A query that a resolver may be asked: one question of class IN, its name written out. */
struct dns_query {
	struct dns_header header;
	char name[DNS_NAME_TEXT];
	uint16_t type;
	size_t question_end; /* offset behind the question */
	uint16_t udp_size;   /* what the client takes over UDP; at least DNS_UDP_MIN */
	bool edns;	     /* it has an OPT record: */
	bool dnssec_ok;
	unsigned edns_version;
};

/* A name as it is on the wire, nothing pointed to, letters as they were. */
struct dns_wire {
	size_t len; /* with the root's zero byte */
	char bytes[DNS_NAME_WIRE];
};

/* One record of a message. */
struct dns_record {
	size_t name_at; /* offset of its name in the message */
	uint16_t type, class;
	uint32_t ttl;
	size_t data_at;
	struct view data;
};

struct dns_address {
	bool v6;
	uint8_t bytes[16]; /* the first four for IPv4 */
	uint32_t ttl;
};

/* The header alone: -EPROTO when there are not twelve bytes. */
osb_must_check int dns_parse_header(struct view message, struct dns_header *ret, struct err *e);

/* -EPROTO with a sentence when it is malformed, -EOPNOTSUPP when it is something else than a
 * question about the Internet. */
osb_must_check int dns_parse_query(struct view message, struct dns_query *ret, struct err *e);

/* Read the name at *at, which then points behind it.  Pointers lead only backwards. */
osb_must_check int dns_read_name(struct view message, size_t *at, char ret[DNS_NAME_TEXT],
				 struct err *e);
osb_must_check int dns_read_wire(struct view message, size_t *at, struct dns_wire *ret,
				 struct err *e);

/* Reads the record at *at, which then points behind it.  Its name is passed over, not read. */
osb_must_check int dns_read_record(struct view message, size_t *at, struct dns_record *ret,
				   struct err *e);

/* An answer to something that may not even be legible: its id, its opcode, its question if there is
 * one, `rcode`, and no records. */
osb_must_check int dns_put_failure(struct view query, enum dns_rcode rcode, struct buf *out);
