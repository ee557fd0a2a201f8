/*
 * codec/dns_reply.c - answers are written anew, record by record, from what was understood.
 */
#include "codec/dns_reply.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"

#define CLASS_IN     1
#define CHAIN_MAX    16	  /* CNAME records on the way to an address */
#define RECORDS_MAX  4096 /* of one section */
#define PLACES_MAX   128  /* names and their ends that can be pointed to */
#define UDP_UPSTREAM 1232 /* what passes everywhere in one piece */
#define OPT_BYTES    11

static unsigned get16(const char *p)
{
	return (unsigned)(uint8_t)p[0] << 8 | (uint8_t)p[1];
}

static void set16(char *p, unsigned v)
{
	p[0] = (char)(v >> 8);
	p[1] = (char)v;
}

static void set32(char *p, uint32_t v)
{
	set16(p, v >> 16);
	set16(p + 2, v & 0xffff);
}

static int put16(struct buf *out, unsigned v)
{
	char bytes[2];

	set16(bytes, v);
	return buf_append(out, bytes, sizeof(bytes));
}

static int bad(struct err *e, const char *what)
{
	return err_set(e, -EPROTO, "DNS answer: %s", what);
}

/* ---- askers ---- */

void dns_asker_of(struct view message, const struct dns_query *q, struct dns_asker *ret)
{
	ret->id = q->header.id;
	ret->udp_size = q->udp_size;
	ret->recursion_desired = q->header.recursion_desired;
	ret->checking_disabled = q->header.checking_disabled;
	ret->edns = q->edns;
	ret->dnssec_ok = q->dnssec_ok;
	ret->question_len = (uint16_t)(q->question_end - DNS_HEADER);
	memcpy(ret->question, message.p + DNS_HEADER, ret->question_len);
}

struct view dns_asker_question(const struct dns_asker *a)
{
	return view_mem(a->question, a->question_len);
}

uint16_t dns_asker_type(const struct dns_asker *a)
{
	return (uint16_t)get16(a->question + a->question_len - 4);
}

struct view dns_asker_key(const struct dns_asker *a, char room[DNS_KEY_MAX])
{
	size_t name_len = a->question_len - 4u;

	memcpy(room, a->question, a->question_len);
	/* The lengths of labels are below any letter. */
	for (size_t i = 0; i < name_len; i++)
		if (room[i] >= 'A' && room[i] <= 'Z')
			room[i] = (char)(room[i] + ('a' - 'A'));
	room[a->question_len] = (char)(a->dnssec_ok | a->checking_disabled << 1);
	return view_mem(room, a->question_len + 1u);
}

static int put_opt(struct buf *out, unsigned udp_size, unsigned rcode, bool dnssec_ok)
{
	char opt[OPT_BYTES] = {0};

	set16(opt + 1, DNS_OPT);
	set16(opt + 3, udp_size);
	opt[5] = (char)(rcode >> 4);
	opt[7] = (char)(dnssec_ok ? 0x80 : 0);
	return buf_append(out, opt, sizeof(opt));
}

int dns_put_query(const struct dns_asker *a, uint16_t id, bool edns, struct buf *out)
{
	char header[DNS_HEADER] = {0};
	int r;

	set16(header, id);
	header[2] = 1; /* recursion is wanted */
	header[3] = (char)(a->checking_disabled ? 0x10 : 0);
	header[5] = 1;
	header[11] = edns;
	r = buf_append(out, header, sizeof(header));
	if (r == 0)
		r = buf_append_view(out, dns_asker_question(a));
	return r == 0 && edns ? put_opt(out, UDP_UPSTREAM, 0, a->dnssec_ok) : r;
}

/* ---- what a server says ---- */

/* Where in the new message a name, or the end of one, can be pointed to. */
struct place {
	struct view name;
	unsigned at;
};

struct reading {
	struct view m;
	size_t answers_at, authorities_at;
	struct dns_header header;
	uint16_t type;
	struct dns_wire chain[CHAIN_MAX + 1]; /* the asked name and what it stands for */
	size_t chain_n;
	struct place places[PLACES_MAX];
	size_t places_n;
	struct buf *out;
	size_t out_at; /* where the new message begins */
	unsigned answers, authorities;
	uint32_t ttl;
};

static bool same_name(const struct dns_wire *a, const struct dns_wire *b)
{
	return view_ieq(view_mem(a->bytes, a->len), view_mem(b->bytes, b->len));
}

static const struct place *find_place(const struct reading *r, struct view name)
{
	for (size_t i = 0; i < r->places_n; i++)
		if (view_ieq(r->places[i].name, name))
			return &r->places[i];
	return NULL;
}

/* Remembered names must stay where they are. */
static int put_name(struct reading *r, const struct dns_wire *name, bool remember)
{
	size_t at = 0;
	int n = 0;

	while (n == 0 && name->bytes[at]) {
		struct view rest = view_mem(name->bytes + at, name->len - at);
		const struct place *known = find_place(r, rest);
		size_t here = r->out->len - r->out_at, label = 1 + (size_t)(uint8_t)rest.p[0];

		if (known)
			return put16(r->out, 0xc000 | known->at);
		if (remember && here < 0x3fff && r->places_n < PLACES_MAX)
			r->places[r->places_n++] = (struct place){rest, (unsigned)here};
		n = buf_append(r->out, rest.p, label);
		at += label;
	}
	return n == 0 ? buf_append_char(r->out, '\0') : n;
}

static int next_record(struct reading *r, size_t *at, struct dns_record *ret, struct err *e)
{
	int n = dns_read_record(r->m, at, ret, e);

	/* RFC 2181: a TTL with its first bit set is none. */
	if (n == 0)
		ret->ttl = ret->ttl > INT32_MAX ? 0 : MIN(ret->ttl, (uint32_t)DNS_TTL_MAX);
	return n;
}

static int is_of(struct reading *r, const struct dns_record *record, const struct dns_wire *name,
		 bool *ret, struct err *e)
{
	size_t at = record->name_at;
	struct dns_wire owner;
	int n = dns_read_wire(r->m, &at, &owner, e);

	*ret = n == 0 && record->class == CLASS_IN && same_name(&owner, name);
	return n;
}

/* The first record of a name that has the type; *ret_found tells. */
static int find_record(struct reading *r, const struct dns_wire *name, uint16_t type,
		       struct dns_record *ret, bool *ret_found, struct err *e)
{
	size_t at = r->answers_at;
	int n = 0;

	*ret_found = false;
	for (unsigned i = 0; n == 0 && i < r->header.answers && !*ret_found; i++) {
		n = next_record(r, &at, ret, e);
		if (n == 0 && ret->type == type)
			n = is_of(r, ret, name, ret_found, e);
	}
	return n;
}

static bool in_chain(const struct reading *r, const struct dns_wire *name)
{
	for (size_t i = 0; i < r->chain_n; i++)
		if (same_name(&r->chain[i], name))
			return true;
	return false;
}

/* ---- what is written of it ---- */

/* Types whose data has names that may point: bytes before them, how many, bytes behind. */
static const struct {
	uint16_t type;
	uint8_t before, names, behind;
} layouts[] = {
	{DNS_NS, 0, 1, 0},    {DNS_CNAME, 0, 1, 0}, {DNS_SOA, 0, 2, 20},
	{DNS_PTR, 0, 1, 0},   {DNS_MX, 2, 1, 0},    {DNS_RP, 0, 2, 0},
	{DNS_AFSDB, 2, 1, 0}, {DNS_SRV, 6, 1, 0},   {DNS_DNAME, 0, 1, 0},
};

static int put_names(struct reading *r, const struct dns_record *record, size_t i, struct err *e)
{
	size_t at = record->data_at + layouts[i].before, end = record->data_at + record->data.len;
	/* Up to here: a name in the data may not use what follows the data. */
	struct view until = view_first(r->m, end);
	int n;

	if (record->data.len < layouts[i].before)
		return bad(e, "a record is too short");
	n = buf_append(r->out, record->data.p, layouts[i].before);
	for (unsigned k = 0; n == 0 && k < layouts[i].names; k++) {
		struct dns_wire name;

		n = dns_read_wire(until, &at, &name, e);
		/* RFC 2782: targets of services are written out. */
		if (n == 0 && (record->type == DNS_SRV || record->type == DNS_DNAME))
			n = buf_append(r->out, name.bytes, name.len);
		else if (n == 0)
			n = put_name(r, &name, /* remember= */ false);
	}
	if (n < 0)
		return n;
	if (end - at != layouts[i].behind)
		return bad(e, "a record has the wrong length");
	return buf_append(r->out, r->m.p + at, end - at);
}

/* SvcParamKeys that are left out: addresses would pass the leases by, and a hidden name the vault.
 */
static bool is_left_out(unsigned key)
{
	enum { IPV4HINT = 4, ECH = 5, IPV6HINT = 6 };

	return key == IPV4HINT || key == ECH || key == IPV6HINT;
}

/* A client must understand the keys of a list of these; false: one of them is left out. */
static bool can_do_without(struct view keys)
{
	for (; keys.len >= 2; keys = view_skip(keys, 2))
		if (is_left_out(get16(keys.p)))
			return false;
	return true;
}

/* 1: the record makes no sense without what is left out. */
static int put_service(struct reading *r, const struct dns_record *record, struct err *e)
{
	size_t at = record->data_at + 2, end = record->data_at + record->data.len;
	struct dns_wire target;
	int n;

	if (record->data.len < 3)
		return bad(e, "a service is too short");
	n = dns_read_wire(view_first(r->m, end), &at, &target, e);
	if (n == 0)
		n = buf_append(r->out, record->data.p, 2);
	if (n == 0)
		n = buf_append(r->out, target.bytes, target.len);
	while (n == 0 && at < end) {
		size_t len = end - at >= 4 ? get16(r->m.p + at + 2) : 0;
		unsigned key;

		if (end - at < 4 || end - at - 4 < len)
			return bad(e, "a service's parameter does not fit");
		key = get16(r->m.p + at);
		if (key == 0 && !can_do_without(view_mem(r->m.p + at + 4, len)))
			return 1;
		if (!is_left_out(key))
			n = buf_append(r->out, r->m.p + at, 4 + len);
		at += 4 + len;
	}
	return n;
}

static int put_data(struct reading *r, const struct dns_record *record, struct err *e)
{
	if (record->type == DNS_A || record->type == DNS_AAAA) {
		if (record->data.len != (record->type == DNS_A ? 4u : 16u))
			return bad(e, "an address has the wrong length");
	} else if (record->type == DNS_SVCB || record->type == DNS_HTTPS) {
		return put_service(r, record, e);
	}
	for (size_t i = 0; i < ARRAY_LEN(layouts); i++)
		if (layouts[i].type == record->type)
			return put_names(r, record, i, e);
	return buf_append_view(r->out, record->data);
}

static int put_record(struct reading *r, const struct dns_wire *owner,
		      const struct dns_record *record, unsigned *count, struct err *e)
{
	size_t begin = r->out->len, length_at;
	char fixed[10] = {0};
	int n = put_name(r, owner, /* remember= */ false);

	set16(fixed, record->type);
	set16(fixed + 2, CLASS_IN);
	set32(fixed + 4, record->ttl);
	if (n == 0)
		n = buf_append(r->out, fixed, sizeof(fixed));
	length_at = r->out->len - 2;
	if (n == 0)
		n = put_data(r, record, e);
	if (n == 1) {
		buf_truncate(r->out, begin);
		return 0;
	}
	if (n < 0)
		return n;
	set16(r->out->mem + r->out->start + length_at, (unsigned)(r->out->len - length_at - 2));
	r->ttl = MIN(r->ttl, record->ttl);
	++*count;
	return 0;
}

/* A CNAME record whose target is the next name of the chain, and can be pointed to from now on. */
static int put_alias(struct reading *r, uint32_t ttl)
{
	struct dns_wire *next = &r->chain[r->chain_n];
	char fixed[10] = {0};
	size_t length_at;
	int n = put_name(r, &r->chain[r->chain_n - 1], /* remember= */ false);

	set16(fixed, DNS_CNAME);
	set16(fixed + 2, CLASS_IN);
	set32(fixed + 4, ttl);
	if (n == 0)
		n = buf_append(r->out, fixed, sizeof(fixed));
	length_at = r->out->len - 2;
	if (n == 0)
		n = put_name(r, next, /* remember= */ true);
	if (n < 0)
		return n;
	set16(r->out->mem + r->out->start + length_at, (unsigned)(r->out->len - length_at - 2));
	r->chain_n++;
	r->answers++;
	r->ttl = MIN(r->ttl, ttl);
	return 0;
}

/* From name to name, as far as it goes. */
static int follow(struct reading *r, struct err *e)
{
	for (;;) {
		struct dns_record record;
		struct dns_wire *next = &r->chain[r->chain_n];
		bool found;
		int n = find_record(r, &r->chain[r->chain_n - 1], DNS_CNAME, &record, &found, e);
		size_t at;

		if (n < 0 || !found)
			return n;
		if (r->chain_n > CHAIN_MAX)
			return bad(e, "names stand for names without an end");
		at = record.data_at;
		n = dns_read_wire(view_first(r->m, at + record.data.len), &at, next, e);
		if (n == 0 && in_chain(r, next))
			return bad(e, "a name stands for itself");
		if (n == 0)
			n = put_alias(r, record.ttl);
		if (n < 0)
			return n;
	}
}

/* What was asked for, of the last name of the chain; signatures of all of it. */
static int put_answers(struct reading *r, struct err *e)
{
	size_t at = r->answers_at;
	int n = 0;

	for (unsigned i = 0; n == 0 && i < r->header.answers; i++) {
		struct dns_record record;
		const struct dns_wire *last = &r->chain[r->chain_n - 1];
		bool wanted;

		n = next_record(r, &at, &record, e);
		wanted = n == 0 && (record.type == r->type || record.type == DNS_RRSIG);
		for (size_t k = 0; wanted && n == 0 && k < r->chain_n; k++) {
			const struct dns_wire *name = &r->chain[k];
			bool mine;

			if (record.type == r->type && name != last)
				continue;
			n = is_of(r, &record, name, &mine, e);
			if (n < 0 || !mine)
				continue;
			n = put_record(r, name, &record, &r->answers, e);
			break;
		}
	}
	r->authorities_at = at;
	return n;
}

/* RFC 2308: how long there is nothing stands in the SOA record, its TTL and its last field. */
static int put_soa(struct reading *r, struct err *e)
{
	size_t at = r->authorities_at;
	int n = 0;

	for (unsigned i = 0; n == 0 && i < r->header.authorities; i++) {
		struct dns_record record;
		struct dns_wire owner;
		size_t name_at;

		n = next_record(r, &at, &record, e);
		if (n < 0 || record.type != DNS_SOA || record.class != CLASS_IN)
			continue;
		name_at = record.name_at;
		n = dns_read_wire(r->m, &name_at, &owner, e);
		if (n == 0)
			n = put_record(r, &owner, &record, &r->authorities, e);
		if (n == 0) {
			const char *last = record.data.p + record.data.len - 4;
			uint32_t least = (uint32_t)get16(last) << 16 | get16(last + 2);

			r->ttl = MIN(r->ttl, least);
		}
		return n;
	}
	return n;
}

static int write_reply(struct reading *r, const struct dns_asker *a, struct err *e)
{
	char header[DNS_HEADER] = {0};
	size_t at = 0, aliases;
	struct view question = dns_asker_question(a);
	int n = dns_read_wire(question, &at, &r->chain[0], e);

	r->chain_n = 1;
	header[2] = (char)0x81; /* an answer; recursion was wanted, and is there */
	header[3] = (char)(0x80 | r->header.rcode);
	header[5] = 1;
	if (n == 0)
		n = buf_append(r->out, header, sizeof(header));
	if (n == 0)
		n = put_name(r, &r->chain[0], /* remember= */ true);
	if (n == 0)
		n = buf_append(r->out, question.p + at, question.len - at);
	if (n == 0 && r->type != DNS_CNAME)
		n = follow(r, e);
	aliases = r->answers;
	if (n == 0)
		n = put_answers(r, e);
	if (n == 0 && r->answers == aliases) {
		n = put_soa(r, e);
		if (r->authorities == 0)
			r->ttl = 0;
	}
	if (n == 0) {
		set16(r->out->mem + r->out->start + r->out_at + 6, r->answers);
		set16(r->out->mem + r->out->start + r->out_at + 8, r->authorities);
	}
	return n;
}

int dns_reply_read(struct view m, const struct dns_asker *a, uint16_t id, struct buf *out,
		   struct dns_reply *ret, struct err *e)
{
	struct reading r = {.m = m, .out = out, .out_at = out->len, .ttl = DNS_TTL_MAX};
	struct view question = dns_asker_question(a);
	int n = dns_parse_header(m, &r.header, e);

	if (n < 0 || !r.header.response || r.header.opcode != 0 || r.header.id != id ||
	    r.header.questions != 1 || m.len < DNS_HEADER + question.len ||
	    !view_ieq(view_mem(m.p + DNS_HEADER, question.len), question))
		return err_set(e, -ENOMSG, "it answers something else");
	*ret = (struct dns_reply){.rcode = r.header.rcode, .truncated = r.header.truncated};
	if (ret->truncated || (ret->rcode != DNS_NOERROR && ret->rcode != DNS_NXDOMAIN))
		return 0;
	if (r.header.answers > RECORDS_MAX || r.header.authorities > RECORDS_MAX)
		return bad(e, "it has too many records");
	r.answers_at = DNS_HEADER + question.len;
	r.type = dns_asker_type(a);
	n = write_reply(&r, a, e);
	if (n < 0)
		buf_truncate(out, r.out_at);
	if (n == -E2BIG)
		return bad(e, "it is too long");
	ret->ttl_s = r.ttl;
	return n;
}

/* ---- what a client gets ---- */

bool dns_reply_aliases(struct view kept, dns_alias_fn *fn, void *arg)
{
	struct err e = ERR_NONE;
	size_t at = DNS_HEADER;
	struct dns_wire asked;
	unsigned n = get16(kept.p + 6);

	if (dns_read_wire(kept, &at, &asked, &e) < 0)
		return false;
	at += 4;
	for (unsigned i = 0; i < n; i++) {
		struct dns_record record;
		char name[DNS_NAME_TEXT];
		size_t data_at;

		if (dns_read_record(kept, &at, &record, &e) < 0)
			return false;
		if (record.type != DNS_CNAME)
			break;
		data_at = record.data_at;
		if (dns_read_name(kept, &data_at, name, &e) < 0 || !fn(arg, name))
			return false;
	}
	return true;
}

static int put_head(const struct dns_asker *a, unsigned rcode, struct buf *out)
{
	char header[DNS_HEADER] = {0};
	int r;

	set16(header, a->id);
	header[2] = (char)(0x80 | a->recursion_desired);
	header[3] = (char)(0x80 | (a->checking_disabled ? 0x10 : 0) | (rcode & 15));
	header[5] = 1;
	header[11] = a->edns;
	r = buf_append(out, header, sizeof(header));
	return r == 0 ? buf_append_view(out, dns_asker_question(a)) : r;
}

int dns_reply_refuse(const struct dns_asker *a, enum dns_rcode rcode, struct buf *out)
{
	int r = put_head(a, rcode, out);

	return r == 0 && a->edns ? put_opt(out, UDP_UPSTREAM, rcode, a->dnssec_ok) : r;
}

static bool is_kept(const struct dns_record *record, uint32_t ttl, dns_keep_fn *keep, void *arg)
{
	struct dns_address address = {.v6 = record->type == DNS_AAAA, .ttl = ttl};

	if (record->type != DNS_A && record->type != DNS_AAAA)
		return true;
	memcpy(address.bytes, record->data.p, MIN(record->data.len, sizeof(address.bytes)));
	return keep(arg, &address);
}

int dns_reply_put(struct view kept, uint32_t age_s, const struct dns_asker *a, size_t max,
		  dns_keep_fn *keep, void *arg, struct buf *out)
{
	size_t begin = out->len, at = DNS_HEADER + a->question_len;
	unsigned counts[2] = {0}, answers = get16(kept.p + 6), all = answers + get16(kept.p + 8);
	bool truncated = false;
	struct err e = ERR_NONE;
	int r = put_head(a, get16(kept.p + 2) & 15, out);

	max -= a->edns ? OPT_BYTES : 0;
	for (unsigned i = 0; r == 0 && i < all; i++) {
		struct dns_record record;
		uint32_t ttl;

		r = dns_read_record(kept, &at, &record, &e);
		if (r < 0)
			break;
		ttl = record.ttl - MIN(record.ttl, age_s);
		if (!is_kept(&record, ttl, keep, arg))
			continue;
		truncated = out->len - begin + (at - record.name_at) > max;
		if (truncated)
			break;
		r = buf_append(out, kept.p + record.name_at, at - record.name_at);
		if (r == 0)
			set32(out->mem + out->start + out->len - record.data.len - 6, ttl);
		counts[i >= answers]++;
	}
	if (r < 0)
		return r;
	set16(out->mem + out->start + begin + 6, counts[0]);
	set16(out->mem + out->start + begin + 8, counts[1]);
	if (truncated)
		out->mem[out->start + begin + 2] |= 2;
	return a->edns ? put_opt(out, UDP_UPSTREAM, 0, a->dnssec_ok) : 0;
}
