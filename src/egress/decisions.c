/*
 * egress/decisions.c - a ring of decisions, bounded in number and bytes, and who else hears of
 * them.
 */
#include "egress/decisions.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/json_writer.h"
#include "codec/rfc3339.h"
#include "egress/always.h"
#include "egress/box.h"
#include "egress/egress.h"
#include "egress/event_log.h"
#include "egress/learn.h"
#include "egress/settings.h"
#include "egress/webhook.h"
#include "policy/net_policy.h"
#include "policy/net_special.h"

#define KEPT_MAX       1000
#define KEPT_BYTES     (256u << 10) /* strings and all, for one sandbox */
#define SAME_WITHIN_US 1000000
#define SAME_AMONG     16  /* of the newest */
#define LINES_A_SECOND 100 /* on the log and in the file, for one sandbox */
#define LINE_MAX_BYTES 4096
#define DOT_PORT       853

static const char *const kind_names[] = {
	[DECISION_NAME] = "name",
	[DECISION_FLOW] = "flow",
	[DECISION_REQUEST] = "request",
};

/* A decision whose texts are its own. */
struct entry {
	struct list link;
	struct decision what; /* but for `rule` */
	bool has_rule, rule_allow;
	const char *rule_target;
	uint64_t number, count;
	uint64_t first_ns, last_ns; /* wall clock */
	uint64_t last_us;
	size_t bytes;
	char texts[];
};

struct decisions {
	struct list kept; /* oldest first */
	size_t n, bytes;
	uint64_t last_number;
	struct learn *learned;
	uint64_t second; /* in which `lines` were written */
	unsigned lines;
	uint64_t lines_dropped;
};

struct decisions *decisions_new(struct box *b)
{
	struct decisions *d = mem_new(struct decisions);

	(void)b;
	list_init(&d->kept);
	return d;
}

static void drop(struct decisions *d, struct entry *entry)
{
	list_remove(&entry->link);
	d->n--;
	d->bytes -= entry->bytes;
	free(entry);
}

void decisions_free(struct decisions *d)
{
	if (!d)
		return;
	list_each_safe (it, tmp, &d->kept)
		drop(d, list_entry(it, struct entry, link));
	learn_free(d->learned);
	free(d);
}

/* ---- one decision ---- */

static size_t text_bytes(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

static const char *keep_text(char **at, const char *text)
{
	size_t bytes = text_bytes(text);
	char *kept = *at;

	if (!bytes)
		return NULL;
	memcpy(kept, text, bytes);
	*at += bytes;
	return kept;
}

static struct entry *entry_new(const struct decision *what)
{
	const char *target = what->rule ? what->rule->target : NULL;
	size_t bytes = sizeof(struct entry) + text_bytes(what->name) + text_bytes(what->protocol) +
		       text_bytes(what->why) + text_bytes(target);
	struct entry *entry = mem_zero(1, bytes);
	char *at = entry->texts;

	entry->what = *what;
	entry->what.name = keep_text(&at, what->name);
	entry->what.protocol = keep_text(&at, what->protocol);
	entry->what.why = keep_text(&at, what->why);
	entry->what.rule = NULL;
	entry->rule_target = keep_text(&at, target);
	entry->has_rule = what->rule;
	entry->rule_allow = what->rule && what->rule->allow;
	entry->bytes = bytes;
	entry->count = 1;
	entry->first_ns = entry->last_ns = clock_wall_ns();
	entry->last_us = clock_mono_us();
	return entry;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same(const struct entry *entry, const struct decision *b)
{
	const struct decision *a = &entry->what;

	return a->kind == b->kind && a->allowed == b->allowed && a->passed == b->passed &&
	       a->port == b->port && a->uid == b->uid && a->pid == b->pid &&
	       a->has_address == b->has_address &&
	       (!a->has_address ||
		(a->v6 == b->v6 && memcmp(a->address, b->address, a->v6 ? 16 : 4) == 0)) &&
	       same_text(a->name, b->name) && same_text(a->protocol, b->protocol) &&
	       same_text(a->why, b->why) && entry->has_rule == (b->rule != NULL) &&
	       (!b->rule || (entry->rule_allow == b->rule->allow &&
			     same_text(entry->rule_target, b->rule->target)));
}

static void write_rule(struct json_writer *w, const struct entry *entry)
{
	if (entry->has_rule) {
		json_write_key(w, "rule");
		json_write_object(w);
		json_put_cstr(w, "action", entry->rule_allow ? "allow" : "deny");
		json_put_cstr(w, "target", entry->rule_target);
		json_write_object_end(w);
	}
	if (entry->what.why)
		json_put_cstr(w, "reason", entry->what.why);
	else if (!entry->has_rule)
		json_put_cstr(w, "reason", "default action");
}

static void write_time(struct json_writer *w, const char *key, uint64_t wall_ns)
{
	char text[RFC3339_MAX];

	rfc3339_format((int64_t)(wall_ns / 1000000 * 1000000), text);
	json_put_cstr(w, key, text);
}

static bool address_text(const struct decision *what, char ret[INET6_ADDRSTRLEN])
{
	return what->has_address &&
	       inet_ntop(what->v6 ? AF_INET6 : AF_INET, what->address, ret, INET6_ADDRSTRLEN);
}

static void write_entry(struct json_writer *w, const struct entry *entry, const char *sandbox_id)
{
	const struct decision *what = &entry->what;
	char address[INET6_ADDRSTRLEN];

	json_write_object(w);
	json_put_int(w, "number", (int64_t)entry->number);
	write_time(w, "time", entry->first_ns);
	if (entry->count > 1) {
		json_put_int(w, "count", (int64_t)entry->count);
		write_time(w, "lastTime", entry->last_ns);
	}
	if (sandbox_id)
		json_put_cstr(w, "sandboxId", sandbox_id);
	json_put_cstr(w, "kind", kind_names[what->kind]);
	json_put_cstr(w, "verdict", what->allowed ? "allow" : "deny");
	json_put_bool(w, "passed", what->allowed || what->passed);
	if (what->name)
		json_put_cstr(w, "name", what->name);
	if (address_text(what, address))
		json_put_cstr(w, "address", address);
	if (what->port)
		json_put_int(w, "port", what->port);
	if (what->protocol)
		json_put_cstr(w, "protocol", what->protocol);
	write_rule(w, entry);
	if (what->uid >= 0)
		json_put_int(w, "uid", what->uid);
	if (what->pid >= 0)
		json_put_int(w, "pid", what->pid);
	json_write_object_end(w);
}

/* ---- those who hear of it ---- */

/* A sandbox that asks for a thousand names a second shall not fill the disk. */
static bool may_write_line(struct decisions *d, const struct box *b)
{
	uint64_t second = clock_mono_us() / 1000000;

	if (d->second != second) {
		if (d->lines_dropped)
			log_line(LOG_WARN, "decisions were not logged, there were too many",
				 LOG_S("box", b->id), LOG_I("n", (int64_t)d->lines_dropped));
		d->second = second;
		d->lines = 0;
		d->lines_dropped = 0;
	}
	if (d->lines < LINES_A_SECOND)
		return ++d->lines;
	d->lines_dropped++;
	return false;
}

static void write_to_file(const struct box *b, const struct entry *entry)
{
	osb_cleanup(buf_done) struct buf line = BUF_INIT(LINE_MAX_BYTES);
	struct json_writer w;

	json_writer_init(&w, &line);
	write_entry(&w, entry, b->id);
	if (json_writer_end(&w) == 0 && buf_append_char(&line, '\n') == 0)
		event_log_write(b->egress->event_log, buf_view(&line));
}

static void write_to_log(const struct box *b, const struct entry *entry)
{
	const struct decision *what = &entry->what;
	char address[INET6_ADDRSTRLEN] = "";

	address_text(what, address);
	log_line(LOG_INFO,
		 what->allowed	? "allowed"
		 : what->passed ? "would be denied"
				: "denied",
		 LOG_S("box", b->id), LOG_S("kind", kind_names[what->kind]),
		 LOG_S("name", what->name ? what->name : ""), LOG_S("address", address),
		 LOG_I("port", what->port),
		 LOG_S("rule", entry->has_rule ? entry->rule_target : ""),
		 LOG_S("reason", what->why ? what->why : ""));
}

/* A sandbox may have one of its own, beside the operator's. */
static void tell_webhooks(const struct box *b, const char *name)
{
	const char *general = b->egress->settings->deny_webhook, *own = b->settings->deny_webhook;

	if (general[0])
		webhook_denied(b->egress->webhook, general, /* trusted= */ true, b->id, name);
	if (own[0] && strcmp(own, general) != 0)
		webhook_denied(b->egress->webhook, own, /* trusted= */ false, b->id, name);
}

static void tell(struct box *b, const struct entry *entry)
{
	const struct egress *g = b->egress;
	const struct decision *what = &entry->what;
	bool quiet = what->allowed && what->name && always_skips(g->always, what->name);

	if (!quiet && (g->settings->log_decisions || g->event_log) &&
	    may_write_line(b->decisions, b)) {
		if (g->settings->log_decisions)
			write_to_log(b, entry);
		if (g->event_log)
			write_to_file(b, entry);
	}
	if (what->kind == DECISION_NAME && what->name && !what->allowed && !what->passed)
		tell_webhooks(b, what->name);
}

/* Addresses that a sandbox's system talks to by itself, or where clouds keep secrets: nobody means
 * to allow them. */
static bool is_worth_a_rule(const struct decision *what)
{
	static const char *const never[] = {"link-local", "loopback", "metadata",
					    "multicast",  "reserved", "unspecified"};
	const char *kind = net_special(what->v6, what->address);

	for (size_t i = 0; kind && i < ARRAY_LEN(never); i++)
		if (strcmp(kind, never[i]) == 0)
			return false;
	return true;
}

/* What a rule refuses on purpose is not needed, what the operator allows needs no rule, and what no
 * rule could allow is not worth one. */
static void learn_from(struct box *b, const struct decision *what)
{
	struct decisions *d = b->decisions;

	if (b->policy.mode == NET_ENFORCE)
		return;
	if (!d->learned)
		d->learned = learn_new();
	if (what->rule && (!what->rule->allow || what->rule->always))
		return;
	if (what->port == DOT_PORT || (what->why && strncmp(what->why, "dns over", 8) == 0))
		return;
	if (what->kind == DECISION_NAME && !what->has_address && !what->answered)
		return;
	if (what->name)
		learn_name(d->learned, what->name);
	else if (what->has_address && is_worth_a_rule(what))
		learn_address(d->learned, what->v6, what->address);
}

/* ---- all of them ---- */

static struct entry *find_same(struct decisions *d, const struct decision *what)
{
	uint64_t now = clock_mono_us();
	struct list *it = d->kept.prev;

	for (unsigned i = 0; i < SAME_AMONG && it != &d->kept; i++, it = it->prev) {
		struct entry *entry = list_entry(it, struct entry, link);

		if (now - entry->last_us < SAME_WITHIN_US && same(entry, what))
			return entry;
	}
	return NULL;
}

void decisions_note(struct box *b, const struct decision *what)
{
	struct decisions *d = b->decisions;
	struct entry *entry = find_same(d, what);

	learn_from(b, what);
	if (entry) {
		entry->count++;
		entry->last_ns = clock_wall_ns();
		entry->last_us = clock_mono_us();
		return;
	}
	entry = entry_new(what);
	entry->number = ++d->last_number;
	list_push_back(&d->kept, &entry->link);
	d->n++;
	d->bytes += entry->bytes;
	while (d->n > KEPT_MAX || (d->bytes > KEPT_BYTES && d->n > 1))
		drop(d, list_entry(d->kept.next, struct entry, link));
	tell(b, entry);
}

const struct learn *decisions_learned(const struct decisions *d)
{
	return d->learned;
}

void decisions_forget_learned(struct decisions *d)
{
	learn_free(take_ptr(d->learned));
}

/* The first of the newest `max` behind `since`. */
static const struct list *find_first(const struct decisions *d, uint64_t since, size_t max)
{
	const struct list *it = &d->kept;

	for (size_t n = 0; n < max && it->prev != &d->kept; n++) {
		if (list_entry(it->prev, struct entry, link)->number <= since)
			break;
		it = it->prev;
	}
	return it;
}

int decisions_write(const struct decisions *d, uint64_t since, size_t max, bool lines,
		    struct buf *out)
{
	const struct list *it = find_first(d, since, max);
	struct json_writer w;
	int r = 0;

	json_writer_init(&w, out);
	if (!lines)
		json_write_array(&w);
	for (; r == 0 && it != &d->kept; it = it->next) {
		write_entry(&w, list_entry(it, const struct entry, link), NULL);
		if (!lines)
			continue;
		r = json_writer_end(&w);
		if (r == 0)
			r = buf_append_char(out, '\n');
		json_writer_init(&w, out);
	}
	if (!lines) {
		json_write_array_end(&w);
		r = json_writer_end(&w);
	}
	return r;
}
