/*
 * codec/dns.c - reads with every offset checked; a name is followed at most as often as it has
 * bytes to lead backwards.
 */
#include "codec/dns.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"

#define CLASS_IN     1
#define LABEL_MAX    63
#define NAME_BYTES   255
#define RECORD_FIXED 10 /* type, class, ttl, length */
#define RECORD_MIN   (1 + RECORD_FIXED)
#define CHAIN_MAX    16 /* CNAME records on the way to an address */

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

struct name_out {
	char *text;
	size_t len;
	size_t bytes; /* of the name on the wire */
};

static void put_byte(struct name_out *o, uint8_t c)
{
	bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';

	if (c >= 'A' && c <= 'Z')
		o->text[o->len++] = (char)(c + ('a' - 'A'));
	else if (plain)
		o->text[o->len++] = (char)c;
	else
		o->len += (size_t)snprintf(o->text + o->len, 5, "\\%03u", c);
}

static int put_label(struct name_out *o, struct view label, struct err *e)
{
	o->bytes += label.len + 1;
	if (o->bytes + 1 > NAME_BYTES)
		return bad(e, "a name is too long");
	if (o->len)
		o->text[o->len++] = '.';
	for (size_t i = 0; i < label.len; i++)
		put_byte(o, (uint8_t)label.p[i]);
	return 0;
}

int dns_read_name(struct view m, size_t *at, char ret[DNS_NAME_TEXT], struct err *e)
{
	struct name_out o = {.text = ret};
	size_t pos = *at, limit = m.len;
	bool jumped = false;

	for (;;) {
		unsigned n;

		if (pos >= limit)
			return bad(e, "a name has no end");
		n = (uint8_t)m.p[pos];
		if (n >= 0xc0) {
			if (limit - pos < 2)
				return bad(e, "a pointer has no end");
			n = get16(m, pos) & 0x3fff;
			if (n >= pos)
				return bad(e, "a pointer leads forwards");
			if (!jumped)
				*at = pos + 2;
			jumped = true;
			/* Everything before it, and less each time: it comes to an end. */
			limit = pos;
			pos = n;
			continue;
		}
		if (n > LABEL_MAX || limit - pos - 1 < n)
			return bad(e, "a label does not fit");
		if (n == 0)
			break;
		if (put_label(&o, view_mem(m.p + pos + 1, n), e) < 0)
			return e->code;
		pos += 1 + n;
	}
	if (!jumped)
		*at = pos + 1;
	ret[o.len] = '\0';
	return 0;
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
		.rcode = flags & 15,
		.questions = get16(m, 4),
		.answers = get16(m, 6),
		.authorities = get16(m, 8),
		.additionals = get16(m, 10),
	};
	return 0;
}

static int read_question(struct view m, size_t *at, char name[DNS_NAME_TEXT], uint16_t *ret_type,
			 struct err *e)
{
	int r = dns_read_name(m, at, name, e);

	if (r < 0)
		return r;
	if (m.len - *at < 4)
		return bad(e, "the question has no end");
	if (get16(m, *at + 2) != CLASS_IN)
		return bad(e, "the question is not about the Internet");
	*ret_type = (uint16_t)get16(m, *at);
	*at += 4;
	return 0;
}

static int read_record(struct view m, size_t *at, struct dns_record *ret, struct err *e)
{
	int r = dns_read_name(m, at, ret->name, e);
	size_t len;

	if (r < 0)
		return r;
	if (m.len - *at < RECORD_FIXED)
		return bad(e, "a record has no end");
	ret->type = (uint16_t)get16(m, *at);
	ret->class = (uint16_t)get16(m, *at + 2);
	ret->ttl = get32(m, *at + 4);
	len = get16(m, *at + 8);
	*at += RECORD_FIXED;
	if (m.len - *at < len)
		return bad(e, "a record's data does not fit");
	ret->data_at = *at;
	ret->data = view_mem(m.p + *at, len);
	*at += len;
	return 0;
}

/* ---- queries ---- */

/* What the client takes over UDP stands in an OPT record, the class of which is a size. */
static int read_udp_size(struct view m, struct dns_query *q, struct err *e)
{
	unsigned n = q->header.answers + q->header.authorities + q->header.additionals;
	size_t at = q->question_end;
	struct dns_record record;

	if ((m.len - at) / RECORD_MIN < n)
		return bad(e, "it claims more records than it has");
	for (unsigned i = 0; i < n; i++) {
		int r = read_record(m, &at, &record, e);

		if (r < 0)
			return r;
		if (record.type == DNS_OPT && record.name[0] == '\0' && record.class > DNS_UDP_MIN)
			q->udp_size = record.class;
	}
	return at == m.len ? 0 : bad(e, "bytes follow its end");
}

int dns_parse_query(struct view m, struct dns_query *ret, struct err *e)
{
	size_t at = DNS_HEADER;
	int r = dns_parse_header(m, &ret->header, e);

	if (r < 0)
		return r;
	if (ret->header.response || ret->header.opcode != 0)
		return bad(e, "it is not a query");
	if (ret->header.questions != 1)
		return bad(e, "it does not have one question");
	r = read_question(m, &at, ret->name, &ret->type, e);
	if (r < 0)
		return r;
	ret->question_end = at;
	ret->udp_size = DNS_UDP_MIN;
	return read_udp_size(m, ret, e);
}

/* ---- answers ---- */

/* The names that stand for the one that was asked, as CNAME records say, in any order. */
struct chain {
	char names[CHAIN_MAX + 1][DNS_NAME_TEXT];
	size_t n;
};

static bool is_in(const struct chain *c, const char *name)
{
	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->names[i], name) == 0)
			return true;
	return false;
}

static int each_record(struct view m, size_t at, unsigned n,
		       int (*fn)(void *arg, struct view m, const struct dns_record *record,
				 struct err *e),
		       void *arg, struct err *e)
{
	struct dns_record record;
	int r = 0;

	for (unsigned i = 0; r == 0 && i < n; i++) {
		r = read_record(m, &at, &record, e);
		if (r == 0 && record.class == CLASS_IN)
			r = fn(arg, m, &record, e);
	}
	return r;
}

struct follow {
	struct chain *chain;
	struct dns_answer *answer;
	bool grew;
};

static int follow_name(void *arg, struct view m, const struct dns_record *record, struct err *e)
{
	struct follow *f = arg;
	char target[DNS_NAME_TEXT];
	size_t at = record->data_at;
	int r;

	if (record->type != DNS_CNAME || !is_in(f->chain, record->name))
		return 0;
	r = dns_read_name(m, &at, target, e);
	if (r < 0)
		return r;
	if (is_in(f->chain, target))
		return 0;
	if (f->chain->n > CHAIN_MAX)
		return bad(e, "names stand for names without an end");
	memcpy(f->chain->names[f->chain->n++], target, sizeof(target));
	f->answer->ttl_min = MIN(f->answer->ttl_min, record->ttl);
	f->grew = true;
	return 0;
}

static int take_address(void *arg, struct view m, const struct dns_record *record, struct err *e)
{
	struct follow *f = arg;
	struct dns_answer *a = f->answer;
	bool v6 = record->type == DNS_AAAA;

	(void)m;
	if ((record->type != DNS_A && !v6) || !is_in(f->chain, record->name))
		return 0;
	if (record->data.len != (v6 ? 16u : 4u))
		return bad(e, "an address has the wrong length");
	if (a->n == a->room) {
		a->more = true;
		return 0;
	}
	a->addresses[a->n] = (struct dns_address){.v6 = v6, .ttl = record->ttl};
	memcpy(a->addresses[a->n].bytes, record->data.p, record->data.len);
	a->n++;
	return 0;
}

static int check_question(struct view m, const struct dns_query *q, const struct dns_header *h,
			  size_t *at, struct err *e)
{
	char name[DNS_NAME_TEXT];
	uint16_t type;
	int r;

	if (!h->response || h->opcode != 0 || h->id != q->header.id)
		return bad(e, "it does not answer the query");
	if (h->questions != 1)
		return bad(e, "it does not have one question");
	r = read_question(m, at, name, &type, e);
	if (r < 0)
		return r;
	if (type != q->type || strcmp(name, q->name) != 0)
		return bad(e, "it answers another question");
	return 0;
}

int dns_parse_answer(struct view m, const struct dns_query *q, struct dns_answer *ret,
		     struct err *e)
{
	struct chain chain = {.n = 1};
	struct follow f = {.chain = &chain, .answer = ret, .grew = true};
	size_t at = DNS_HEADER;
	int r = dns_parse_header(m, &ret->header, e);

	ret->n = 0;
	ret->more = false;
	ret->ttl_min = UINT32_MAX;
	if (r == 0)
		r = check_question(m, q, &ret->header, &at, e);
	if (r < 0)
		return r;
	memcpy(chain.names[0], q->name, sizeof(q->name));
	/* Each round adds a name, and there are at most CHAIN_MAX. */
	while (r == 0 && f.grew) {
		f.grew = false;
		r = each_record(m, at, ret->header.answers, follow_name, &f, e);
	}
	return r < 0 ? r : each_record(m, at, ret->header.answers, take_address, &f, e);
}

/* ---- refusals ---- */

int dns_put_refusal(struct view query, enum dns_rcode rcode, bool truncated, struct buf *out)
{
	size_t end = DNS_HEADER;
	char header[DNS_HEADER] = {0}, name[DNS_NAME_TEXT];
	struct err e = ERR_NONE;
	uint16_t type;
	int r;

	if (query.len < DNS_HEADER)
		return -EPROTO;
	memcpy(header, query.p, 4);
	/* An answer, the opcode and the wish for recursion kept; recursion is offered. */
	header[2] = (char)(((uint8_t)header[2] & 0x79) | 0x80 | (truncated ? 2 : 0));
	header[3] = (char)(0x80 | rcode);
	if (get16(query, 4) >= 1 && read_question(query, &end, name, &type, &e) == 0)
		header[5] = 1;
	else
		end = DNS_HEADER;
	r = buf_append(out, header, sizeof(header));
	if (r == 0)
		r = buf_append(out, query.p + DNS_HEADER, end - DNS_HEADER);
	return r;
}
