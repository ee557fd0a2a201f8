/*
 * egress/dns_server.c - from a sandbox's question to the answer that leaves: what the policy says
 * about the name, who knows the answer, what the policy says about that, and then, when the kernel
 * lets its addresses pass, the answer.
 *
 * Whoever asks is hostile: questions under way, connections and questions in a moment are
 * counted, and beyond their bounds nobody but this sandbox notices.
 */
#include "egress/dns_server.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/dns_reply.h"
#include "egress/box.h"
#include "egress/decisions.h"
#include "egress/dns_cache.h"
#include "egress/dns_tcp.h"
#include "egress/dns_upstreams.h"
#include "egress/dns_verdict.h"
#include "egress/leases.h"
#include "net/loop.h"

#define QUESTIONS_MAX 256  /* under way */
#define DATAGRAMS_MAX 32   /* read at a time: others want to be heard, too */
#define QUERY_MAX     4096 /* bytes */
#define UDP_MAX	      4096 /* bytes of an answer, whatever the client says */
#define ADDRESSES_MAX 128  /* of one answer */
#define WINDOW_MS     100
#define WINDOW_MAX    1000	  /* questions in it */
#define OUT_KEPT      (16u << 10) /* bytes of memory between answers */

struct question {
	struct dns_wait wait;
	struct list link; /* under way, or spare */
	struct dns_server *server;
	struct dns_asker asker;
	bool abandoned; /* nobody wants the answer; it is still asked for, and counts */
	struct dns_tcp_client *client; /* NULL = over UDP: */
	struct sockaddr_in from;
};

struct dns_server {
	struct box *box;
	struct loop *loop;
	struct loop_fd *udp;
	struct dns_tcp *tcp;
	struct list under_way, spare;
	unsigned questions_n; /* of both */
	struct buf out;
	uint64_t window_us; /* since when questions are counted */
	unsigned window_n;
	struct loop_timer *rest; /* too much was asked: nothing is read until then */
};

/* ---- answers ---- */

static void send_out(struct question *q)
{
	struct dns_server *d = q->server;
	struct view message = buf_view(&d->out);

	if (q->client)
		dns_tcp_answer(q->client, message);
	else if (message.len > 0)
		/* If there is no room for it, the client asks again.  It is in the same namespace:
		 * a forged sender must not make a way out of answers. */
		(void)sendto(d->box->fds[RUNTIME_NET_DNS_UDP], message.p, message.len,
			     MSG_NOSIGNAL | MSG_DONTWAIT | MSG_DONTROUTE,
			     (struct sockaddr *)&q->from, sizeof(q->from));
	buf_clear(&d->out);
	buf_shrink(&d->out, OUT_KEPT);
}

static void refuse(struct question *q, enum dns_rcode rcode)
{
	buf_clear(&q->server->out);
	if (dns_reply_refuse(&q->asker, rcode, &q->server->out) < 0)
		buf_clear(&q->server->out);
	send_out(q);
}

static void note(const struct question *q, const char *name, const struct dns_verdict *v,
		 const struct dns_address *a)
{
	struct decision what = {
		.kind = DECISION_NAME,
		.allowed = v->allowed,
		.passed = v->passes,
		.name = name,
		.protocol = q->client ? "tcp" : "udp",
		.rule = v->rule,
		.why = v->why,
		.answered = v->answered,
		.uid = -1,
		.pid = -1,
	};

	if (a) {
		what.has_address = true;
		what.v6 = a->v6;
		memcpy(what.address, a->bytes, sizeof(what.address));
	}
	decisions_note(q->server->box, &what);
}

/* An answer on its way through the policy. */
struct sifting {
	const struct question *question;
	struct dns_verdict asked;
	struct dns_verdict alias;    /* of the first one that is denied */
	struct dns_verdict address;  /* the same */
	struct dns_address stranger; /* that address */
	struct dns_address leased[ADDRESSES_MAX];
	size_t leased_n, kept_n;
	bool bound; /* the vault has business with the name */
};

static bool sift_alias(void *arg, const char *name)
{
	struct sifting *s = arg;
	struct dns_verdict v = dns_verdict_alias(s->question->server->box, &s->asked, name);

	if (!v.allowed && s->alias.allowed)
		s->alias = v;
	return v.passes;
}

static bool sift_address(void *arg, const struct dns_address *a)
{
	struct sifting *s = arg;
	struct dns_verdict v = dns_verdict_address(s->question->server->box, a);

	/* IPv6 cannot be led to the vault: bound hosts have the other addresses alone. */
	if (a->v6 && s->bound)
		return false;
	if (!v.allowed && s->address.allowed) {
		s->address = v;
		s->stranger = *a;
	}
	/* Whatever leaves is leased: more than that many do not leave. */
	if (!v.passes || s->kept_n == ADDRESSES_MAX)
		return false;
	s->kept_n++;
	if (v.allowed)
		s->leased[s->leased_n++] = *a;
	return true;
}

static size_t room_of(const struct question *q)
{
	return q->client ? DNS_MESSAGE_MAX : MIN(q->asker.udp_size, (size_t)UDP_MAX);
}

/* Writes what the sandbox may see of it to d->out; false: it may see nothing. */
static bool sift(struct question *q, const char *name, struct view kept, uint32_t age_s,
		 struct sifting *s)
{
	struct dns_server *d = q->server;
	bool seen = dns_reply_aliases(kept, sift_alias, s);

	if (!s->alias.allowed)
		note(q, name, &s->alias, NULL);
	if (!seen)
		return false;
	buf_clear(&d->out);
	if (dns_reply_put(kept, age_s, &q->asker, room_of(q), sift_address, s, &d->out) < 0)
		return false;
	/* It passes because the mode is lenient, and no longer than that. */
	if (!s->alias.allowed)
		s->leased_n = 0;
	if (!s->address.allowed)
		note(q, name, &s->address, &s->stranger);
	return true;
}

static bool has_records(struct view kept)
{
	struct dns_header header;
	struct err e = ERR_NONE;

	return dns_parse_header(kept, &header, &e) == 0 && header.rcode == DNS_NOERROR &&
	       header.answers > 0;
}

/* The policy may have changed since the question was asked: it is asked again. */
static void answer(struct question *q, struct view kept, uint32_t age_s)
{
	const struct dns_verdict fine = {.allowed = true, .passes = true};
	struct sifting s = {.question = q, .alias = fine, .address = fine};
	struct box *b = q->server->box;
	struct err e = ERR_NONE;
	char name[DNS_NAME_TEXT];
	size_t at = 0;

	if (dns_read_name(dns_asker_question(&q->asker), &at, name, &e) < 0)
		name[0] = '\0';
	s.asked = dns_verdict_name(b, name);
	s.bound = box_diverts(b, name);
	if (!s.asked.passes) {
		note(q, name, &s.asked, NULL);
		refuse(q, DNS_NXDOMAIN);
		return;
	}
	if (!sift(q, name, kept, age_s, &s)) {
		refuse(q, DNS_NXDOMAIN);
		return;
	}
	if (s.leased_n > 0 && leases_grant(b, name, s.leased, s.leased_n, &e) < 0) {
		log_line(LOG_ERROR, "an answer is kept back", LOG_S("box", b->id),
			 LOG_S("err", e.msg));
		refuse(q, DNS_SERVFAIL);
		return;
	}
	if (s.alias.allowed) {
		s.asked.answered = has_records(kept);
		note(q, name, &s.asked, s.leased_n ? s.leased : NULL);
	}
	send_out(q);
}

/* ---- questions ---- */

static struct question *take_spare(struct dns_server *d)
{
	struct question *q;

	if (!list_empty(&d->spare)) {
		q = list_entry(d->spare.next, struct question, link);
		list_remove(&q->link);
		return q;
	}
	if (d->questions_n == QUESTIONS_MAX)
		return NULL;
	d->questions_n++;
	q = mem_new(struct question);
	list_init(&q->wait.link);
	return q;
}

static void give_back(struct question *q)
{
	dns_wait_cancel(&q->wait);
	list_remove(&q->link);
	list_push_front(&q->server->spare, &q->link);
}

static void on_answered(struct dns_wait *w, struct view kept)
{
	struct question *q = container_of(w, struct question, wait);

	if (kept.len > 0 && !q->abandoned)
		answer(q, kept, 0);
	else if (!q->abandoned)
		refuse(q, DNS_SERVFAIL);
	give_back(q);
}

/* The rest happens when somebody has answered. */
static void ask(struct question *asked)
{
	struct dns_server *d = asked->server;
	struct question *q = take_spare(d);

	if (!q) {
		refuse(asked, DNS_SERVFAIL);
		return;
	}
	*q = *asked;
	q->wait.fn = on_answered;
	list_init(&q->wait.link);
	list_push_back(&d->under_way, &q->link);
	if (dns_upstreams_ask(d->box->egress->upstreams, &q->asker,
			      d->box->settings->dns_upstream_timeout, &q->wait) == 0)
		return;
	refuse(q, DNS_SERVFAIL);
	give_back(q);
}

static void decide(struct question *q, const struct dns_query *query)
{
	struct dns_server *d = q->server;
	struct egress *g = d->box->egress;
	char room[DNS_KEY_MAX];
	struct dns_verdict v;
	struct view kept;
	uint32_t age_s;

	if (query->edns_version > 0) {
		refuse(q, DNS_BADVERS);
		return;
	}
	/* All that a name has, whole zones, questions about the server. */
	if ((query->type >= DNS_META && query->type <= DNS_ANY) || query->type == DNS_OPT ||
	    query->type == 0) {
		refuse(q, DNS_REFUSED);
		return;
	}
	v = dns_verdict_name(d->box, query->name);
	if (!v.passes) {
		note(q, query->name, &v, NULL);
		refuse(q, DNS_NXDOMAIN);
		return;
	}
	if (dns_cache_get(g->cache, dns_asker_key(&q->asker, room), loop_now_us(d->loop), &kept,
			  &age_s))
		answer(q, kept, age_s);
	else
		ask(q);
}

/* False: it is no question; nothing is answered. */
static void take_message(struct dns_server *d, struct view message, struct question *q)
{
	struct dns_query query;
	struct dns_header header;
	struct err e = ERR_NONE;
	int r = dns_parse_query(message, &query, &e);

	d->window_n++;
	if (r == 0) {
		dns_asker_of(message, &query, &q->asker);
		decide(q, &query);
		return;
	}
	buf_clear(&d->out);
	/* Nobody answers answers: that could go on for ever. */
	if (dns_parse_header(message, &header, &e) == 0 && !header.response) {
		enum dns_rcode rcode = DNS_FORMERR;

		if (r == -EOPNOTSUPP)
			rcode = header.opcode ? DNS_NOTIMP : DNS_REFUSED;
		if (dns_put_failure(message, rcode, &d->out) < 0)
			buf_clear(&d->out);
	}
	send_out(q);
}

/* ---- bounds ---- */

static void go_on(void *arg)
{
	struct dns_server *d = arg;

	loop_fd_want(d->udp, LOOP_READ);
	dns_tcp_pause(d->tcp, false);
}

/* Too many in a moment: what comes now waits in the kernel, or is lost there. */
static bool must_rest(struct dns_server *d)
{
	uint64_t now = loop_now_us(d->loop);

	if (now - d->window_us > WINDOW_MS * 1000) {
		d->window_us = now;
		d->window_n = 0;
	}
	if (d->window_n < WINDOW_MAX)
		return false;
	loop_fd_want(d->udp, 0);
	dns_tcp_pause(d->tcp, true);
	loop_timer_start(d->rest, WINDOW_MS);
	return true;
}

/* ---- sockets ---- */

static void on_udp(void *arg, int fd, unsigned events)
{
	struct dns_server *d = arg;
	char bytes[QUERY_MAX];

	(void)events;
	for (unsigned i = 0; i < DATAGRAMS_MAX && !must_rest(d); i++) {
		struct question q = {.server = d};
		socklen_t len = sizeof(q.from);
		ssize_t n = recvfrom(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_TRUNC,
				     (struct sockaddr *)&q.from, &len);

		if (n < 0)
			return;
		if ((size_t)n <= sizeof(bytes) && q.from.sin_family == AF_INET)
			take_message(d, view_mem(bytes, (size_t)n), &q);
	}
}

static void on_tcp_message(void *arg, struct dns_tcp_client *c, struct view message)
{
	struct dns_server *d = arg;
	struct question q = {.server = d, .client = c};

	take_message(d, message, &q);
	(void)must_rest(d); /* what was read is answered */
}

static void on_tcp_gone(void *arg, struct dns_tcp_client *c)
{
	struct dns_server *d = arg;

	list_each_safe (it, next, &d->under_way) {
		struct question *q = list_entry(it, struct question, link);

		if (q->client == c) {
			q->client = NULL;
			q->abandoned = true;
		}
	}
}

static const struct dns_tcp_events tcp_events = {on_tcp_message, on_tcp_gone};

int dns_server_new(struct box *b, struct dns_server **ret, struct err *e)
{
	struct dns_server *d = mem_new(struct dns_server);
	int r;

	d->box = b;
	d->loop = b->egress->loop;
	d->out = BUF_INIT(DNS_MESSAGE_MAX);
	list_init(&d->under_way);
	list_init(&d->spare);
	d->rest = loop_timer_new(d->loop, go_on, d);
	dns_upstreams_hold(b->egress->upstreams);
	r = loop_fd_new(d->loop, b->fds[RUNTIME_NET_DNS_UDP], on_udp, d, &d->udp, e);
	if (r == 0)
		r = dns_tcp_new(d->loop, b->fds[RUNTIME_NET_DNS_TCP], &tcp_events, d, &d->tcp, e);
	if (r < 0) {
		dns_server_free(d);
		return r;
	}
	loop_fd_want(d->udp, LOOP_READ);
	*ret = d;
	return 0;
}

static void free_questions(struct list *l)
{
	list_each_safe (it, next, l) {
		struct question *q = list_entry(it, struct question, link);

		dns_wait_cancel(&q->wait);
		free(q);
	}
}

void dns_server_free(struct dns_server *d)
{
	if (!d)
		return;
	free_questions(&d->under_way);
	free_questions(&d->spare);
	dns_tcp_free(d->tcp);
	loop_fd_free(d->udp);
	loop_timer_free(d->rest);
	dns_upstreams_release(d->box->egress->upstreams);
	buf_done(&d->out);
	free(d);
}
