/*
 * egress/leases.c - records of addresses beside the kernel's dynamic sets.
 *
 * An address may have several names: it is let pass while one of them is allowed.  What an earlier
 * egress granted is in the kernel but has no record here; it stays until its time is over, or until
 * the policy changes.
 */
#include "egress/leases.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "egress/box.h"
#include "egress/settings.h"
#include "net/loop.h"
#include "policy/net_special.h"
#include "policy/net_table.h"
#include "sys/nfset.h"
#include "sys/sock_diag.h"

#define SECOND_US (1000 * 1000ull)

#define LEASE_MIN_S 60u
#define LEASE_MAX_S 360u
#define EXTRA_S	    60u
#define ENOUGH_S    30u	 /* so much more than the TTL need not be renewed */
#define RENEW_S	    300u /* of one that is in use, below that */

/* One sandbox's ceilings; the oldest go first. */
#define LEASES_MAX     4096u
#define NAMES_MAX      4u
#define NAME_BYTES_MAX (1u << 20)

struct lease {
	struct list link; /* oldest first */
	bool v6;
	bool granted;				/* in the kernel's dynamic set */
	bool diverted;				/* in its vault set */
	bool will_be_granted, will_be_diverted; /* when the change under way is made */
	bool in_use, was_in_use;
	uint8_t bytes[16];
	uint64_t until_us;
	char *names[NAMES_MAX]; /* newest first */
};

struct leases {
	struct box *box;
	struct map *by_address;
	struct list all;
	size_t name_bytes;
	struct loop_timer *poll;
	bool begun;	/* its first policy is in force */
	bool strangers; /* the kernel may have some of which there is no record */
};

struct key {
	char bytes[17];
};

static struct key key_of(bool v6, const uint8_t bytes[16])
{
	struct key k = {.bytes = {v6 ? 6 : 4}};

	memcpy(k.bytes + 1, bytes, v6 ? 16 : 4);
	return k;
}

static struct lease *find(const struct leases *l, bool v6, const uint8_t bytes[16])
{
	struct key k = key_of(v6, bytes);

	return map_get(l->by_address, view_mem(k.bytes, sizeof(k.bytes)));
}

static struct nfset_element element_of(const struct lease *x, uint64_t now)
{
	struct nfset_element v = {.v6 = x->v6, .single = true, .timeout_s = 1};

	memcpy(v.first, x->bytes, sizeof(v.first));
	memcpy(v.last, x->bytes, sizeof(v.last));
	if (x->until_us > now)
		v.timeout_s = (uint32_t)((x->until_us - now + SECOND_US - 1) / SECOND_US);
	return v;
}

/* ---- records ---- */

static struct lease *add(struct leases *l, bool v6, const uint8_t bytes[16])
{
	struct lease *x = mem_new(struct lease);
	struct key k = key_of(v6, bytes);

	x->v6 = v6;
	memcpy(x->bytes, bytes, v6 ? 16 : 4);
	list_push_back(&l->all, &x->link);
	map_put(l->by_address, view_mem(k.bytes, sizeof(k.bytes)), x);
	return x;
}

static void forget_name(struct leases *l, struct lease *x, size_t i)
{
	if (!x->names[i])
		return;
	l->name_bytes -= strlen(x->names[i]) + 1;
	free(x->names[i]);
	x->names[i] = NULL;
}

static void drop(struct leases *l, struct lease *x)
{
	struct key k = key_of(x->v6, x->bytes);

	map_remove(l->by_address, view_mem(k.bytes, sizeof(k.bytes)));
	list_remove(&x->link);
	for (size_t i = 0; i < NAMES_MAX; i++)
		forget_name(l, x, i);
	free(x);
}

static void put_name(struct leases *l, struct lease *x, const char *name)
{
	char *newest = NULL;
	size_t i = 0;

	while (i < NAMES_MAX - 1 && x->names[i] && strcmp(x->names[i], name) != 0)
		i++;
	if (x->names[i] && strcmp(x->names[i], name) == 0) {
		newest = x->names[i];
	} else {
		forget_name(l, x, i);
		newest = mem_strdup(name);
		l->name_bytes += strlen(name) + 1;
	}
	memmove(&x->names[1], &x->names[0], i * sizeof(x->names[0]));
	x->names[0] = newest;
}

static bool any_allowed(const struct box *b, const struct lease *x)
{
	const struct net_rule *rule;

	/* Granted when a rule about addresses allowed it; that may be no longer so. */
	if (net_special(x->v6, x->bytes) && !box_allows_explicitly(b, x->v6, x->bytes))
		return false;
	for (size_t i = 0; i < NAMES_MAX && x->names[i]; i++)
		if (box_allows_name(b, x->names[i], &rule))
			return true;
	return false;
}

/* What is over, and what is too much. */
static void tidy(struct leases *l, struct nfset_batch *batch, uint64_t now)
{
	list_each_safe (it, next, &l->all) {
		struct lease *x = list_entry(it, struct lease, link);
		struct nfset_element v = element_of(x, now);
		bool over = x->until_us <= now;

		if (!over && map_len(l->by_address) <= LEASES_MAX &&
		    l->name_bytes <= NAME_BYTES_MAX)
			continue;
		if (!over && x->granted)
			nfset_remove(batch, NET_SET_DYNAMIC, &v, 1);
		if (!over && x->diverted)
			nfset_remove(batch, NET_SET_VAULT, &v, 1);
		drop(l, x);
	}
}

/* ---- what the kernel is told ---- */

static void renew(const struct lease *x, struct nfset_batch *batch, uint64_t now)
{
	struct nfset_element v = element_of(x, now);

	if (x->granted)
		nfset_renew(batch, NET_SET_DYNAMIC, &v, 1);
	if (x->diverted)
		nfset_renew(batch, NET_SET_VAULT, &v, 1);
}

static int commit(struct box *b, struct nfset_batch *batch, struct err *e)
{
	if (!settings_closed(b->settings))
		return 0;
	return nfset_commit(b->fds[RUNTIME_NET_SETS], batch, e);
}

static void start_timer(struct leases *l)
{
	if (!list_empty(&l->all) && !loop_timer_active(l->poll))
		loop_timer_start(l->poll, l->box->settings->lease_check_sec * 1000ull);
}

static uint64_t end_of(uint32_t ttl, uint64_t now)
{
	uint64_t seconds = MIN(MAX((uint64_t)ttl + EXTRA_S, LEASE_MIN_S), LEASE_MAX_S);

	return now + seconds * SECOND_US;
}

static void take(struct box *b, const char *name, const struct dns_address *a, bool allowed,
		 struct nfset_batch *batch, uint64_t now)
{
	struct leases *l = b->leases;
	struct lease *x = find(l, a->v6, a->bytes);
	uint64_t until = end_of(a->ttl, now);
	bool divert = allowed && box_diverts(b, name), fresh = !x;

	if (!x)
		x = add(l, a->v6, a->bytes);
	put_name(l, x, name);
	list_remove(&x->link);
	list_push_back(&l->all, &x->link);
	if (!fresh && x->granted >= allowed && x->diverted >= divert &&
	    x->until_us + (EXTRA_S - ENOUGH_S) * SECOND_US >= until)
		return;
	x->until_us = MAX(x->until_us, until);
	x->granted |= allowed;
	x->diverted |= divert;
	renew(x, batch, now);
}

/* The kernel may have them or not; the next answer makes it sure. */
static void forget(struct leases *l, const struct dns_address *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct lease *x = find(l, v[i].v6, v[i].bytes);

		if (x)
			drop(l, x);
	}
	l->strangers = true;
}

int leases_grant(struct box *b, const char *name, const struct dns_address *v, size_t n,
		 struct err *e)
{
	osb_cleanup(nfset_batch_freep) struct nfset_batch *batch = nfset_batch_new(NET_TABLE);
	struct leases *l = b->leases;
	const struct net_rule *rule;
	bool allowed = box_allows_name(b, name, &rule);
	uint64_t now = clock_mono_us();
	int r;

	for (size_t i = 0; i < n; i++)
		take(b, name, &v[i], allowed, batch, now);
	if (map_len(l->by_address) > LEASES_MAX || l->name_bytes > NAME_BYTES_MAX)
		tidy(l, batch, now);
	r = commit(b, batch, e);
	if (r < 0) {
		forget(l, v, n);
		return err_ctx(e, "let the addresses of '%s' pass", name);
	}
	start_timer(l);
	return 0;
}

static bool any_diverted(const struct box *b, const struct lease *x)
{
	for (size_t i = 0; i < NAMES_MAX && x->names[i]; i++)
		if (box_diverts(b, x->names[i]))
			return true;
	return false;
}

/* What differs between before and after; or all of it, where nothing is there before. */
static void say(struct nfset_batch *batch, const char *set, const struct nfset_element *v,
		bool before, bool after)
{
	if (after && !before)
		nfset_renew(batch, set, v, 1);
	else if (before && !after)
		nfset_remove(batch, set, v, 1);
}

/* The first policy is the one under which an earlier egress granted what there is no record of: it
 * stays.  With the next one it goes. */
void leases_revise(struct box *b, struct nfset_batch *batch)
{
	struct leases *l = b->leases;
	uint64_t now = clock_mono_us();
	bool anew = l->begun && l->strangers;

	if (anew) {
		nfset_flush(batch, NET_SET_DYNAMIC);
		nfset_flush(batch, NET_SET_VAULT);
	}
	list_each_safe (it, next, &l->all) {
		struct lease *x = list_entry(it, struct lease, link);
		struct nfset_element v = element_of(x, now);

		x->will_be_granted = x->until_us > now && any_allowed(b, x);
		x->will_be_diverted = x->will_be_granted && any_diverted(b, x);
		say(batch, NET_SET_DYNAMIC, &v, !anew && x->granted, x->will_be_granted);
		say(batch, NET_SET_VAULT, &v, !anew && x->diverted, x->will_be_diverted);
	}
}

void leases_revised(struct box *b)
{
	struct leases *l = b->leases;

	list_each_safe (it, next, &l->all) {
		struct lease *x = list_entry(it, struct lease, link);

		x->granted = x->will_be_granted;
		x->diverted = x->will_be_diverted;
	}
	l->strangers = !l->begun;
	l->begun = true;
}

int leases_divert(struct box *b, struct err *e)
{
	osb_cleanup(nfset_batch_freep) struct nfset_batch *batch = nfset_batch_new(NET_TABLE);
	int r;

	leases_revise(b, batch);
	r = commit(b, batch, e);
	if (r == 0)
		leases_revised(b);
	return r;
}

const char *leases_name(const struct box *b, bool v6, const uint8_t bytes[16])
{
	const struct lease *x = find(b->leases, v6, bytes);

	return x && x->until_us > clock_mono_us() ? x->names[0] : NULL;
}

bool leases_leads(const struct box *b, const char *name, bool v6, const uint8_t bytes[16])
{
	const struct lease *x = find(b->leases, v6, bytes);

	for (size_t i = 0; x && i < NAMES_MAX && x->names[i]; i++)
		if (strcmp(x->names[i], name) == 0)
			return x->until_us > clock_mono_us();
	return false;
}

/* ---- connections ---- */

static void mark_in_use(void *arg, bool v6, const uint8_t bytes[16])
{
	struct lease *x = find(arg, v6, bytes);

	if (x)
		x->in_use = true;
}

/* One that is in use goes on; when it no longer is, it has the full time once more. */
static void prolong(struct leases *l, struct nfset_batch *batch, uint64_t now)
{
	list_each_safe (it, next, &l->all) {
		struct lease *x = list_entry(it, struct lease, link);
		bool ended = x->was_in_use && !x->in_use;

		x->was_in_use = x->in_use;
		if (x->until_us <= now || !(x->in_use || ended))
			continue;
		if (x->until_us > now + (ended ? LEASE_MAX_S : RENEW_S) * SECOND_US)
			continue;
		x->until_us = now + LEASE_MAX_S * SECOND_US;
		renew(x, batch, now);
	}
}

static void poll_connections(void *arg)
{
	struct leases *l = arg;
	osb_cleanup(nfset_batch_freep) struct nfset_batch *batch = nfset_batch_new(NET_TABLE);
	uint64_t now = clock_mono_us();
	struct err e = ERR_NONE;
	int r = 0;

	list_each_safe (it, next, &l->all)
		list_entry(it, struct lease, link)->in_use = false;
	for (int v6 = 0; r == 0 && v6 < 2; v6++)
		r = sock_diag_each(l->box->fds[RUNTIME_NET_DIAG], v6, mark_in_use, l, &e);
	if (r == 0)
		prolong(l, batch, now);
	tidy(l, batch, now);
	if (r == 0)
		r = commit(l->box, batch, &e);
	if (r < 0) {
		l->strangers = true;
		log_line(LOG_WARN, "cannot prolong what is in use, retrying",
			 LOG_S("box", l->box->id), LOG_S("err", e.msg));
	}
	start_timer(l);
}

struct leases *leases_new(struct box *b)
{
	struct leases *l = mem_new(struct leases);

	l->box = b;
	l->by_address = map_new();
	l->poll = loop_timer_new(b->egress->loop, poll_connections, l);
	list_init(&l->all);
	return l;
}

void leases_free(struct leases *l)
{
	if (!l)
		return;
	list_each_safe (it, next, &l->all)
		drop(l, list_entry(it, struct lease, link));
	map_free(l->by_address);
	loop_timer_free(l->poll);
	free(l);
}
