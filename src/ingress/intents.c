/*
 * ingress/intents.c - a queue of commands, one connection, and who was told lately.
 *
 * The connection is made when there is something to say and stays as long as Redis likes it.
 */
#include "ingress/intents.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/json_writer.h"
#include "codec/rfc3339.h"
#include "net/connect.h"
#include "net/loop.h"

#define QUEUE_MAX    8192 /* entries that wait */
#define QUEUE_BYTES  (8u << 20)
#define PAYLOAD_MAX  4096
#define URI_MAX	     2048
#define ANSWER_MS    5000
#define RETRY_MS     500
#define RETRY_MAX_MS 30000
#define LATELY_MAX   65536
#define IN_MAX	     (2 * REDIS_BULK_MAX)

/* A sandbox that was told of. */
struct lately {
	struct list link; /* the oldest first */
	char *id;
	uint64_t at_us;
};

struct intents {
	struct loop *loop;
	struct intents_to to;
	struct map *lately;
	struct list order;
	struct buf queue; /* commands that were not sent, whole ones */
	size_t queued;	  /* entries in it */
	size_t dropped;	  /* since it was last said */
	struct buf out;	  /* being sent */
	struct buf in;
	size_t unanswered; /* commands */
	struct connect *connect;
	int fd;
	struct loop_fd *watch;
	struct loop_timer *patience; /* for an answer */
	struct loop_timer *retry;
	uint64_t retry_ms;
};

static void work(struct intents *i);

/* ---- who was told of lately ---- */

static void forget(struct intents *i, struct lately *l)
{
	(void)map_remove(i->lately, view_of(l->id));
	list_remove(&l->link);
	free(l->id);
	free(l);
}

static bool is_due(struct intents *i, struct view id)
{
	uint64_t now = loop_now_us(i->loop), interval = i->to.min_interval_s * 1000000ull;
	struct lately *l;

	if (!interval)
		return true;
	while (!list_empty(&i->order)) {
		l = list_entry(i->order.next, struct lately, link);
		if (now - l->at_us < interval && map_len(i->lately) < LATELY_MAX)
			break;
		forget(i, l);
	}
	if (map_get(i->lately, id))
		return false;
	l = mem_new(struct lately);
	l->id = mem_strndup(id.p, id.len);
	l->at_us = now;
	list_push_back(&i->order, &l->link);
	(void)map_put(i->lately, id, l);
	return true;
}

/* ---- the connection ---- */

static void disconnect(struct intents *i)
{
	connect_free(take_ptr(i->connect));
	loop_fd_free(take_ptr(i->watch));
	i->fd = fd_close(i->fd);
	loop_timer_stop(i->patience);
	buf_clear(&i->out);
	buf_clear(&i->in);
	i->unanswered = 0;
}

/* What was on its way may have arrived or not: it is not said twice. */
static void lose(struct intents *i, const char *why)
{
	log_line(LOG_WARN, "Redis does not take renew intents, trying again", LOG_S("err", why),
		 LOG_I("waiting", (int64_t)i->queued), LOG_I("dropped", (int64_t)i->dropped));
	i->dropped = 0;
	disconnect(i);
	loop_timer_start(i->retry, i->retry_ms);
	i->retry_ms = MIN(i->retry_ms * 2, (uint64_t)RETRY_MAX_MS);
}

static void on_late(void *arg)
{
	lose(arg, "no answer in time");
}

static void on_retry(void *arg)
{
	work(arg);
}

static bool take_answers(struct intents *i)
{
	struct redis_reply reply;
	char text[200];
	ssize_t n;

	while ((n = redis_reply_parse(buf_view(&i->in), &reply)) > 0) {
		if (reply.kind == REDIS_ERROR) {
			snprintf(text, sizeof(text), VIEW_FMT,
				 VIEW_ARG(view_first(reply.text, sizeof(text) - 1)));
			lose(i, text);
			return false;
		}
		buf_consume(&i->in, (size_t)n);
		i->unanswered -= i->unanswered > 0;
		i->retry_ms = RETRY_MS;
		if (i->unanswered)
			loop_timer_start(i->patience, ANSWER_MS);
		else
			loop_timer_stop(i->patience);
	}
	if (n < 0)
		lose(i, "what answers is no Redis");
	return n == 0;
}

static bool read_answers(struct intents *i)
{
	char *room = buf_reserve(&i->in, 4096);
	ssize_t n = room ? recv(i->fd, room, 4096, MSG_DONTWAIT) : 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	/* Redis closes idle connections: no loss if nothing was on its way. */
	if (n <= 0 && !i->unanswered && !i->out.len) {
		disconnect(i);
		return false;
	}
	if (n <= 0) {
		lose(i, "the connection ended");
		return false;
	}
	buf_commit(&i->in, (size_t)n);
	return take_answers(i);
}

static void on_ready(void *arg, int fd, unsigned events)
{
	struct intents *i = arg;

	if (!(events & LOOP_READ) || read_answers(i))
		work(i);
}

static int count_commands(const struct intents *i)
{
	return i->to.queue_max_len ? 2 : 1;
}

static void send_some(struct intents *i)
{
	struct view rest;
	ssize_t n = 1;

	if (!i->out.len && i->queued) {
		struct buf empty = i->out;

		i->unanswered += i->queued * (size_t)count_commands(i);
		i->out = i->queue;
		i->queue = empty;
		i->queued = 0;
		loop_timer_start(i->patience, ANSWER_MS);
	}
	while (i->out.len && n > 0) {
		rest = buf_view(&i->out);
		n = send(i->fd, rest.p, rest.len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n > 0)
			buf_consume(&i->out, (size_t)n);
	}
	/* What is wrong shows when it is read. */
	loop_fd_want(i->watch,
		     LOOP_READ | (i->out.len && errno == EAGAIN ? (unsigned)LOOP_WRITE : 0u));
}

/* AUTH and SELECT come first, if they are needed. */
static bool introduce(struct intents *i)
{
	const struct redis_url *u = i->to.redis;
	struct view auth[] = {VIEW("AUTH"), view_of(u->user), view_of(u->password)};
	struct view select[] = {VIEW("SELECT"), VIEW_NONE};
	char db[16];
	bool fits = true;

	if (u->password[0] && !u->user[0])
		auth[1] = auth[2];
	if (u->password[0]) {
		fits = redis_command(&i->out, auth, u->user[0] ? 3 : 2) == 0;
		i->unanswered++;
	}
	if (u->db) {
		snprintf(db, sizeof(db), "%u", u->db);
		select[1] = view_of(db);
		fits = fits && redis_command(&i->out, select, 2) == 0;
		i->unanswered++;
	}
	if (i->unanswered)
		loop_timer_start(i->patience, ANSWER_MS);
	return fits;
}

static void connected(void *arg, int fd, const struct err *e)
{
	struct intents *i = arg;
	struct err why = ERR_NONE;

	connect_free(take_ptr(i->connect));
	if (fd < 0) {
		lose(i, e->msg);
		return;
	}
	i->fd = fd;
	if (loop_fd_new(i->loop, fd, on_ready, i, &i->watch, &why) < 0 || !introduce(i)) {
		lose(i, why.msg);
		return;
	}
	work(i);
}

static void work(struct intents *i)
{
	struct connect_to to = {.timeout_ms = ANSWER_MS};
	struct err e = ERR_NONE;

	if (i->fd >= 0) {
		send_some(i);
		return;
	}
	if (i->connect || !i->queued || loop_timer_active(i->retry))
		return;
	to.ip = i->to.ip;
	to.port = i->to.redis->port;
	if (connect_new(i->loop, &to, connected, i, &i->connect, &e) < 0)
		lose(i, e.msg);
}

/* ---- entries ---- */

static bool write_payload(struct buf *out, struct view id, uint16_t port, struct view uri)
{
	struct json_writer w;
	char when[RFC3339_MAX];

	rfc3339_format((int64_t)clock_wall_ns(), when);
	json_writer_init(&w, out);
	json_write_object(&w);
	json_put_string(&w, "sandbox_id", id);
	json_put_cstr(&w, "observed_at", when);
	json_put_int(&w, "port", port);
	json_put_string(&w, "request_uri", view_first(uri, URI_MAX));
	json_write_object_end(&w);
	return json_writer_end(&w) == 0;
}

static bool enqueue(struct intents *i, struct view payload)
{
	struct view key = view_of(i->to.queue_key);
	struct view push[] = {VIEW("LPUSH"), key, payload};
	struct view trim[] = {VIEW("LTRIM"), key, VIEW("0"), VIEW_NONE};
	size_t before = i->queue.len;
	char last[16];

	if (i->queued >= QUEUE_MAX || redis_command(&i->queue, push, ARRAY_LEN(push)) < 0)
		return false;
	if (i->to.queue_max_len) {
		snprintf(last, sizeof(last), "%u", i->to.queue_max_len - 1);
		trim[3] = view_of(last);
		if (redis_command(&i->queue, trim, ARRAY_LEN(trim)) < 0) {
			buf_truncate(&i->queue, before);
			return false;
		}
	}
	i->queued++;
	return true;
}

void intents_publish(struct intents *i, struct view id, uint16_t port, struct view uri)
{
	osb_cleanup(buf_done) struct buf payload = BUF_INIT(4 * PAYLOAD_MAX);

	if (!is_due(i, id))
		return;
	if (!write_payload(&payload, id, port, uri) || !enqueue(i, buf_view(&payload)))
		i->dropped++;
	work(i);
}

/* ---- birth and death ---- */

struct intents *intents_new(struct loop *l, const struct intents_to *to)
{
	struct intents *i = mem_new(struct intents);

	i->loop = l;
	i->to = *to;
	i->fd = -1;
	i->retry_ms = RETRY_MS;
	i->lately = map_new();
	list_init(&i->order);
	buf_init(&i->queue, QUEUE_BYTES);
	buf_init(&i->out, QUEUE_BYTES);
	buf_init(&i->in, IN_MAX);
	i->patience = loop_timer_new(l, on_late, i);
	i->retry = loop_timer_new(l, on_retry, i);
	return i;
}

void intents_free(struct intents *i)
{
	if (!i)
		return;
	disconnect(i);
	list_each_safe (it, tmp, &i->order)
		forget(i, list_entry(it, struct lately, link));
	map_free(i->lately);
	buf_done(&i->queue);
	buf_done(&i->out);
	buf_done(&i->in);
	loop_timer_free(i->patience);
	loop_timer_free(i->retry);
	free(i);
}
