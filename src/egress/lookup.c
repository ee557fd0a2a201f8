/*
 * egress/lookup.c - asks the upstream servers for A records, then for AAAA records.
 */
#include "egress/lookup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "codec/dns.h"
#include "codec/dns_reply.h"
#include "egress/dns_cache.h"
#include "egress/dns_upstreams.h"
#include "egress/egress.h"
#include "net/loop.h"

#define ADDRESSES_MAX 8
#define LABEL_MAX     63
#define CLASS_IN      1

struct lookup {
	struct dns_wait wait; /* first: what we are called back with */
	struct egress *egress;
	struct loop_task *cached; /* the answer was there already */
	struct dns_asker asker;
	char *name;
	uint32_t timeout_s;
	bool waiting;
	lookup_fn *fn;
	void *arg;
};

/* "a.b" as \1a\1b\0, then type and class. */
static bool write_question(struct dns_asker *a, const char *name, uint16_t type)
{
	struct view rest = view_of(name), label;
	char *at = a->question;

	if (rest.len > DNS_NAME_WIRE - 2)
		return false;
	while (view_split(&rest, '.', &label)) {
		if (label.len == 0 || label.len > LABEL_MAX)
			return false;
		*at++ = (char)label.len;
		memcpy(at, label.p, label.len);
		at += label.len;
	}
	*at++ = 0;
	*at++ = (char)(type >> 8);
	*at++ = (char)type;
	*at++ = 0;
	*at++ = CLASS_IN;
	a->question_len = (uint16_t)(at - a->question);
	return true;
}

static size_t read_addresses(struct view kept, uint16_t type, struct dns_address *v)
{
	struct dns_header header;
	struct err e = ERR_NONE;
	struct dns_wire name;
	size_t at = DNS_HEADER, n = 0;

	if (dns_parse_header(kept, &header, &e) < 0 || dns_read_wire(kept, &at, &name, &e) < 0)
		return 0;
	at += 4;
	for (unsigned i = 0; i < header.answers && n < ADDRESSES_MAX; i++) {
		struct dns_record record;
		size_t len = type == DNS_A ? 4 : 16;

		if (dns_read_record(kept, &at, &record, &e) < 0)
			break;
		if (record.type != type || record.data.len != len)
			continue;
		v[n] = (struct dns_address){.v6 = type == DNS_AAAA, .ttl = record.ttl};
		memcpy(v[n++].bytes, record.data.p, len);
	}
	return n;
}

static int ask(struct lookup *l, uint16_t type, struct err *e);

static void answered(struct lookup *l, struct view kept)
{
	uint16_t type = dns_asker_type(&l->asker);
	struct dns_address v[ADDRESSES_MAX];
	size_t n = read_addresses(kept, type, v);
	struct err e = ERR_NONE;

	if (n == 0 && type == DNS_A && kept.len && ask(l, DNS_AAAA, &e) == 0)
		return;
	if (n == 0 && e.code == 0)
		(void)err_set(&e, -EHOSTUNREACH, "'%s' has no address", l->name);
	l->fn(l->arg, v, n, &e);
}

static void on_answer(struct dns_wait *w, struct view kept)
{
	struct lookup *l = (struct lookup *)w;

	l->waiting = false;
	answered(l, kept);
}

static bool find_cached(struct lookup *l, struct view *ret)
{
	char room[DNS_KEY_MAX];
	uint32_t age;

	return dns_cache_get(l->egress->cache, dns_asker_key(&l->asker, room),
			     loop_now_us(l->egress->loop), ret, &age);
}

static void on_cached(void *arg)
{
	struct lookup *l = arg;
	struct view kept;

	answered(l, find_cached(l, &kept) ? kept : VIEW_NONE);
}

static int ask(struct lookup *l, uint16_t type, struct err *e)
{
	struct view kept;
	int r;

	if (!write_question(&l->asker, l->name, type))
		return err_set(e, -EINVAL, "'%s' is no host name", l->name);
	if (find_cached(l, &kept)) {
		loop_task_post(l->cached);
		return 0;
	}
	r = dns_upstreams_ask(l->egress->upstreams, &l->asker, l->timeout_s, &l->wait);
	if (r < 0)
		return err_set(e, r, "no DNS server can be asked for '%s'", l->name);
	l->waiting = true;
	return 0;
}

int lookup_new(struct egress *g, const char *name, uint32_t timeout_s, lookup_fn *fn, void *arg,
	       struct lookup **ret, struct err *e)
{
	struct lookup *l = mem_new(struct lookup);
	int r;

	l->wait.fn = on_answer;
	l->egress = g;
	l->cached = loop_task_new(g->loop, on_cached, l);
	l->asker.recursion_desired = true;
	l->asker.udp_size = DNS_UDP_MIN;
	l->name = mem_strdup(name);
	l->timeout_s = timeout_s;
	l->fn = fn;
	l->arg = arg;
	r = ask(l, DNS_A, e);
	if (r < 0) {
		lookup_free(l);
		return r;
	}
	*ret = l;
	return 0;
}

void lookup_free(struct lookup *l)
{
	if (!l)
		return;
	if (l->waiting)
		dns_wait_cancel(&l->wait);
	loop_task_free(l->cached);
	free(l->name);
	free(l);
}
