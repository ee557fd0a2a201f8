/*
 * codec/dns.c - reads with every offset checked; a name is followed backwards alone, and not often.
 */
#include "codec/dns.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"

#define CLASS_IN     1
#define LABEL_MAX    63
#define JUMPS_MAX    64 /* pointers in one name */
#define RECORD_FIXED 10 /* type, class, ttl, length */
#define RECORD_MIN   (1 + RECORD_FIXED)

static unsigned get16(struct view m, size_t at)
{
	return (unsigned)(uint8_t)m.p[at] << 8 | (uint8_t)m.p[at + 1];
}

static uint32_t get32(struct view m, size_t at)
{
	return (uint32_t)get16(m, at) << 16 | get16(m, at + 2);
}

static int bad(struct err *e, const char *what)
{
	return err_set(e, -EPROTO, "DNS message: %s", what);
}

/* ---- names ---- */

static int put_label(struct dns_wire *w, struct view label, struct err *e)
{
	if (w->len + 1 + label.len + 1 > DNS_NAME_WIRE)
		return bad(e, "a name is too long");
	w->bytes[w->len++] = (char)label.len;
	memcpy(w->bytes + w->len, label.p, label.len);
	w->len += label.len;
	return 0;
}

int dns_read_wire(struct view m, size_t *at, struct dns_wire *ret, struct err *e)
{
	size_t pos = *at, limit = m.len;
	unsigned jumps = 0;

	ret->len = 0;
	for (;;) {
		unsigned n;

		if (pos >= limit)
			return bad(e, "a name has no end");
		n = (uint8_t)m.p[pos];
		if (n >= 0xc0) {
			if (limit - pos < 2)
				return bad(e, "a pointer has no end");
			n = get16(m, pos) & 0x3fff;
			if (n >= pos || n < DNS_HEADER || jumps == JUMPS_MAX)
				return bad(e, "a pointer leads nowhere");
			if (jumps++ == 0)
				*at = pos + 2;
			/* Everything before it, and less each time: it comes to an end. */
			limit = pos;
			pos = n;
			continue;
		}
		if (n > LABEL_MAX || limit - pos - 1 < n)
			return bad(e, "a label does not fit");
		if (n == 0)
			break;
		if (put_label(ret, view_mem(m.p + pos + 1, n), e) < 0)
			return e->code;
		pos += 1 + n;
	}
	if (jumps == 0)
		*at = pos + 1;
	ret->bytes[ret->len++] = '\0';
	return 0;
}

static size_t put_byte(char *text, uint8_t c)
{
	bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';

	if (c >= 'A' && c <= 'Z')
		text[0] = (char)(c + ('a' - 'A'));
	else if (plain)
		text[0] = (char)c;
	else
		return (size_t)snprintf(text, 5, "\\%03u", c);
	return 1;
}

static void wire_text(const struct dns_wire *w, char ret[DNS_NAME_TEXT])
{
	size_t at = 0, len = 0;

	while (w->bytes[at]) {
		size_t end = at + 1 + (uint8_t)w->bytes[at];

		if (len)
			ret[len++] = '.';
		for (at++; at < end; at++)
			len += put_byte(ret + len, (uint8_t)w->bytes[at]);
	}
	ret[len] = '\0';
}

int dns_read_name(struct view m, size_t *at, char ret[DNS_NAME_TEXT], struct err *e)
{
	struct dns_wire w;
	int r = dns_read_wire(m, at, &w, e);

	if (r == 0)
		wire_text(&w, ret);
	return r;
}

/* ---- the parts of a message ---- */

int dns_parse_header(struct view m, struct dns_header *ret, struct err *e)
{
	unsigned flags;

	if (m.len < DNS_HEADER)
		return bad(e, "it is shorter than a header");
	flags = get16(m, 2);
	*ret = (struct dns_header){
		.id = (uint16_t)get16(m, 0),
		.response = flags & 0x8000,
		.opcode = flags >> 11 & 15,
		.truncated = flags & 0x0200,
		.recursion_desired = flags & 0x0100,
		.checking_disabled = flags & 0x0010,
		.rcode = flags & 15,
		.questions = get16(m, 4),
		.answers = get16(m, 6),
		.authorities = get16(m, 8),
		.additionals = get16(m, 10),
	};
	return 0;
}

static int skip_name(struct view m, size_t *at, struct err *e)
{
	size_t pos = *at;

	while (pos < m.len) {
		unsigned n = (uint8_t)m.p[pos];

		if (n > LABEL_MAX && n < 0xc0)
			return bad(e, "a label does not fit");
		if (n == 0 || n >= 0xc0) {
			*at = pos + (n ? 2 : 1);
			return *at <= m.len ? 0 : bad(e, "a pointer has no end");
		}
		pos += 1 + n;
	}
	return bad(e, "a name has no end");
}

int dns_read_record(struct view m, size_t *at, struct dns_record *ret, struct err *e)
{
	size_t pos = *at, len;
	int r = skip_name(m, &pos, e);

	if (r < 0)
		return r;
	if (m.len - pos < RECORD_FIXED)
		return bad(e, "a record has no end");
	len = get16(m, pos + 8);
	if (m.len - pos - RECORD_FIXED < len)
		return bad(e, "a record's data does not fit");
	*ret = (struct dns_record){
		.name_at = *at,
		.type = (uint16_t)get16(m, pos),
		.class = (uint16_t)get16(m, pos + 2),
		.ttl = get32(m, pos + 4),
		.data_at = pos + RECORD_FIXED,
		.data = view_mem(m.p + pos + RECORD_FIXED, len),
	};
	*at = pos + RECORD_FIXED + len;
	return 0;
}

/* ---- queries ---- */

/* What the client takes stands in an OPT record: its class is a size, its TTL flags. */
static int read_opt(const struct dns_record *record, struct dns_query *q, struct err *e)
{
	if (q->edns)
		return bad(e, "it has two OPT records");
	q->edns = true;
	q->udp_size = (uint16_t)MAX((unsigned)record->class, (unsigned)DNS_UDP_MIN);
	q->edns_version = record->ttl >> 16 & 0xff;
	q->dnssec_ok = record->ttl & 0x8000;
	return 0;
}

static int read_rest(struct view m, struct dns_query *q, struct err *e)
{
	unsigned n = q->header.answers + q->header.authorities + q->header.additionals;
	size_t at = q->question_end;
	struct dns_record record;
	int r = 0;

	if ((m.len - at) / RECORD_MIN < n)
		return bad(e, "it claims more records than it has");
	for (unsigned i = 0; i < n && r == 0; i++) {
		r = dns_read_record(m, &at, &record, e);
		if (r == 0 && record.type == DNS_OPT && m.p[record.name_at] == '\0')
			r = read_opt(&record, q, e);
	}
	if (r < 0)
		return r;
	return at == m.len ? 0 : bad(e, "bytes follow its end");
}

static int read_question(struct view m, struct dns_query *q, struct err *e)
{
	size_t at = DNS_HEADER;
	struct dns_wire name;
	int r = dns_read_wire(m, &at, &name, e);

	if (r < 0)
		return r;
	if (at - DNS_HEADER != name.len)
		return bad(e, "the question points elsewhere");
	if (m.len - at < 4)
		return bad(e, "the question has no end");
	wire_text(&name, q->name);
	q->type = (uint16_t)get16(m, at);
	q->question_end = at + 4;
	if (get16(m, at + 2) != CLASS_IN)
		return err_set(e, -EOPNOTSUPP, "the question is not about the Internet");
	return 0;
}

int dns_parse_query(struct view m, struct dns_query *ret, struct err *e)
{
	int r = dns_parse_header(m, &ret->header, e);

	if (r < 0)
		return r;
	if (ret->header.response)
		return bad(e, "it is not a query");
	if (ret->header.opcode != 0)
		return err_set(e, -EOPNOTSUPP, "it is not a question");
	if (ret->header.questions != 1)
		return bad(e, "it does not have one question");
	r = read_question(m, ret, e);
	if (r < 0)
		return r;
	ret->udp_size = DNS_UDP_MIN;
	ret->edns = ret->dnssec_ok = false;
	ret->edns_version = 0;
	return read_rest(m, ret, e);
}

int dns_put_failure(struct view query, enum dns_rcode rcode, struct buf *out)
{
	char header[DNS_HEADER] = {0};
	struct err e = ERR_NONE;
	struct dns_query q;
	int r;

	if (query.len < DNS_HEADER)
		return -EPROTO;
	memcpy(header, query.p, 4);
	/* An answer, the opcode and the wish for recursion kept; recursion is offered. */
	header[2] = (char)(((uint8_t)header[2] & 0x79) | 0x80);
	header[3] = (char)(0x80 | rcode);
	q.question_end = DNS_HEADER;
	r = get16(query, 4) == 1 ? read_question(query, &q, &e) : -EPROTO;
	/* One of another class is legible, too. */
	header[5] = r == 0 || r == -EOPNOTSUPP;
	r = buf_append(out, header, sizeof(header));
	if (r == 0 && header[5])
		r = buf_append(out, query.p + DNS_HEADER, q.question_end - DNS_HEADER);
	return r;
}
