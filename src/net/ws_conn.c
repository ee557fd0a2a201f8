/*
 * net/ws_conn.c - WebSocket messages on a socket.
 *
 * No callback is made from inside a function that the owner calls: what must be told then is told
 * by `task`.
 */
#include "net/ws_conn.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/rand.h"
#include "codec/ws_reader.h"
#include "net/loop.h"
#include "net/sendq.h"

#define READ_BYTES   (64 * 1024)
#define READ_ROUNDS  4
#define QUEUE_SLACK  (16 * 1024 * 1024) /* above the mark, for an owner that does not stop */
#define CLOSE_MS     5000
#define STOPPED_MS   250 /* no timer of a running process is that late */
#define CONTROL_MAX  125
#define HEADER_BYTES 16

enum ws_state {
	WS_OPEN,
	WS_CLOSE_SENT, /* by us first: the peer's close frame is awaited */
	WS_LEAVING,    /* nothing more is understood: our last bytes leave, input is dropped */
	WS_OVER,
};

struct ws_conn {
	struct loop *loop;
	struct ws_options o;
	const struct ws_events *events;
	void *arg;
	int fd;
	bool is_client;
	enum ws_state state;
	struct loop_fd *watch;
	struct loop_task *task;
	struct loop_timer *ping_timer, *read_timer, *write_timer, *close_timer;
	bool paused;
	bool over_mark;
	bool write_shut;
	bool busy;  /* one of our loop callbacks runs: memory is kept until it returns */
	bool freed; /* by the owner, meanwhile */
	uint64_t last_read_us;

	struct sendq out;
	struct ws_reader reader;

	bool pong_waits; /* the queue was full: only the newest ping is answered */
	char pong[CONTROL_MAX];
	size_t pong_len;

	bool ended; /* `closed` is to be told by the task */
	unsigned close_code;
	char reason[CONTROL_MAX];
	size_t reason_len;
};

static void update_wants(struct ws_conn *c)
{
	unsigned want = 0;

	if (!c->watch)
		return;
	if (c->state != WS_OVER && !c->ended) {
		want |= c->paused && c->state == WS_OPEN ? 0 : LOOP_READ;
		want |= sendq_len(&c->out) ? LOOP_WRITE : 0;
	}
	loop_fd_want(c->watch, want);
}

/* The connection is over; `closed` follows from the loop. */
static void end_later(struct ws_conn *c, unsigned code, struct view reason)
{
	if (c->ended || c->state == WS_OVER)
		return;
	c->ended = true;
	if (c->state != WS_LEAVING) {
		c->close_code = code;
		c->reason_len = MIN(reason.len, sizeof(c->reason));
		memcpy(c->reason, reason.p ? reason.p : "", c->reason_len);
	}
	loop_task_post(c->task);
	update_wants(c);
}

/* ---- writing ---- */

static void queued(struct ws_conn *c, int r)
{
	if (r < 0) {
		end_later(c, WS_CLOSE_ABNORMAL, VIEW_NONE);
		return;
	}
	if (sendq_len(&c->out) > c->o.queue_high)
		c->over_mark = true;
	if (sendq_len(&c->out) && c->o.write_timeout_ms && !loop_timer_active(c->write_timer))
		loop_timer_start(c->write_timer, c->o.write_timeout_ms);
	update_wants(c);
}

static int write_masked(struct ws_conn *c, struct buf *header, const unsigned char mask[4],
			struct view head, struct view data)
{
	size_t total = head.len + data.len;
	osb_cleanup(buf_done) struct buf body = BUF_INIT(MAX(total, (size_t)1));
	struct view h = buf_view(header);
	char *p = buf_reserve(&body, MAX(total, (size_t)1));

	if (!p)
		return -E2BIG;
	memcpy(p, head.p ? head.p : "", head.len);
	memcpy(p + head.len, data.p ? data.p : "", data.len);
	ws_mask(p, total, mask, 0);
	return sendq_write(&c->out, c->fd, (struct iovec[]){{(void *)h.p, h.len}, {p, total}}, 2);
}

static void write_frame(struct ws_conn *c, enum ws_opcode opcode, struct view head,
			struct view data)
{
	osb_cleanup(buf_done) struct buf header = BUF_INIT(HEADER_BYTES);
	unsigned char mask[4];
	struct view h;
	int r;

	if (c->is_client)
		rand_bytes(mask, sizeof(mask));
	r = ws_frame_format(&header, /* fin= */ true, opcode, head.len + data.len,
			    c->is_client ? mask : NULL);
	h = buf_view(&header);
	if (r == 0 && c->is_client)
		r = write_masked(c, &header, mask, head, data);
	else if (r == 0)
		r = sendq_write(&c->out, c->fd,
				(struct iovec[]){{(void *)h.p, h.len},
						 {(void *)head.p, head.len},
						 {(void *)data.p, data.len}},
				3);
	queued(c, r);
}

bool ws_conn_send2(struct ws_conn *c, enum ws_opcode opcode, struct view head, struct view data)
{
	if (c->state == WS_OPEN && !c->ended)
		write_frame(c, opcode, head, data);
	return !c->over_mark;
}

bool ws_conn_send(struct ws_conn *c, enum ws_opcode opcode, struct view data)
{
	return ws_conn_send2(c, opcode, VIEW_NONE, data);
}

static void send_close(struct ws_conn *c, unsigned code, struct view reason)
{
	unsigned char payload[2] = {(unsigned char)(code >> 8), (unsigned char)code};
	struct view head = view_mem(payload, ws_close_code_valid(code) ? sizeof(payload) : 0);

	reason = view_first(reason, CONTROL_MAX - sizeof(payload));
	write_frame(c, WS_CLOSE, head, head.len ? reason : VIEW_NONE);
}

/* The handshake is done, or given up: what is queued leaves, then the socket closes. */
static void leave(struct ws_conn *c, unsigned code, struct view reason)
{
	c->close_code = code;
	c->reason_len = MIN(reason.len, sizeof(c->reason));
	memcpy(c->reason, reason.p ? reason.p : "", c->reason_len);
	c->state = WS_LEAVING;
	loop_timer_start(c->close_timer, CLOSE_MS);
	loop_timer_stop(c->ping_timer);
	ws_reader_done(&c->reader);
	update_wants(c);
}

static void violate(struct ws_conn *c, unsigned code, const char *reason)
{
	if (c->state == WS_OPEN)
		send_close(c, code, view_of(reason));
	leave(c, code, view_of(reason));
}

/* Our side is finished: the peer sees the end when everything queued has left. */
static void shut_write(struct ws_conn *c)
{
	if (c->state != WS_LEAVING || c->write_shut || sendq_len(&c->out))
		return;
	c->write_shut = true;
	(void)shutdown(c->fd, SHUT_WR);
}

/* ---- reading ---- */

/* False: the connection was freed. */
static bool tell_message(struct ws_conn *c, enum ws_opcode opcode, struct view data)
{
	c->events->message(c->arg, opcode, data);
	return !c->freed;
}

static void on_ping(struct ws_conn *c, struct view payload)
{
	if (c->state != WS_OPEN)
		return;
	if (!c->over_mark) {
		write_frame(c, WS_PONG, VIEW_NONE, payload);
		return;
	}
	c->pong_waits = true;
	c->pong_len = payload.len;
	memcpy(c->pong, payload.p ? payload.p : "", payload.len);
}

static void on_close_frame(struct ws_conn *c, const struct ws_event *ev)
{
	if (c->state == WS_OPEN)
		send_close(c, ev->code, VIEW_NONE);
	leave(c, ev->code, ev->data);
}

/* 1 = go on, 0 = needs more bytes or nothing more counts, -1 = freed. */
static int step(struct ws_conn *c)
{
	struct ws_event ev;

	ws_reader_next(&c->reader, &ev);
	switch (ev.kind) {
	case WS_EVENT_NONE:
		return 0;
	case WS_EVENT_MESSAGE:
		return c->state != WS_OPEN || tell_message(c, ev.opcode, ev.data) ? 1 : -1;
	case WS_EVENT_PING:
		on_ping(c, ev.data);
		return 1;
	case WS_EVENT_PONG:
		return 1; /* that something came is all that counts */
	case WS_EVENT_CLOSE:
		on_close_frame(c, &ev);
		return 0;
	case WS_EVENT_BAD:
		violate(c, ev.code, ev.reason);
		return 0;
	}
	return 0;
}

/* Works on what was read.  False: freed. */
static bool process_input(struct ws_conn *c)
{
	int r = 1;

	while (r > 0 && !c->ended &&
	       (c->state == WS_CLOSE_SENT || (c->state == WS_OPEN && !c->paused)))
		r = step(c);
	shut_write(c);
	return r >= 0;
}

static void read_socket(struct ws_conn *c)
{
	for (int round = 0; round < READ_ROUNDS && !c->ended; round++) {
		char *p = ws_reader_room(&c->reader, READ_BYTES);
		ssize_t n = p ? recv(c->fd, p, READ_BYTES, MSG_DONTWAIT) : -1;

		if (p && n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n <= 0) {
			end_later(c, WS_CLOSE_ABNORMAL, VIEW_NONE);
			break;
		}
		c->last_read_us = loop_now_us(c->loop);
		if (c->state == WS_LEAVING)
			continue; /* dropped: never committed */
		ws_reader_add(&c->reader, (size_t)n);
		if (!process_input(c))
			return;
		if (n < READ_BYTES || (c->paused && c->state == WS_OPEN))
			break;
	}
	ws_reader_rest(&c->reader);
	update_wants(c);
}

/* ---- events ---- */

/* False: freed. */
static bool flush_queue(struct ws_conn *c)
{
	ssize_t n = sendq_flush(&c->out, c->fd);

	if (n < 0 && n != -EAGAIN) {
		end_later(c, WS_CLOSE_ABNORMAL, VIEW_NONE);
		return true;
	}
	if (sendq_len(&c->out) == 0)
		loop_timer_stop(c->write_timer);
	else if (n > 0 && c->o.write_timeout_ms)
		loop_timer_start(c->write_timer, c->o.write_timeout_ms);
	shut_write(c);
	if (!c->over_mark || sendq_len(&c->out) > c->o.queue_high / 2)
		return true;
	c->over_mark = false;
	if (c->pong_waits && c->state == WS_OPEN) {
		c->pong_waits = false;
		write_frame(c, WS_PONG, VIEW_NONE, view_mem(c->pong, c->pong_len));
	}
	if (!c->events->drained || c->state != WS_OPEN)
		return true;
	c->events->drained(c->arg);
	return !c->freed;
}

static void work_socket(struct ws_conn *c, unsigned events)
{
	if ((events & LOOP_WRITE) && !flush_queue(c))
		return;
	if ((events & LOOP_READ) && !c->ended && !(c->paused && c->state == WS_OPEN))
		read_socket(c);
	else
		update_wants(c);
}

static void tell_closed(struct ws_conn *c)
{
	c->state = WS_OVER;
	update_wants(c);
	loop_timer_stop(c->ping_timer);
	loop_timer_stop(c->read_timer);
	loop_timer_stop(c->write_timer);
	loop_timer_stop(c->close_timer);
	c->events->closed(c->arg, c->close_code, view_mem(c->reason, c->reason_len));
}

static void work_task(struct ws_conn *c)
{
	if (c->state == WS_OVER)
		return;
	if (!c->ended && !process_input(c))
		return;
	if (c->ended)
		tell_closed(c);
	else
		update_wants(c);
}

/* A loop callback is over: the memory goes if the owner freed the connection in it. */
static void settle(struct ws_conn *c)
{
	c->busy = false;
	if (c->freed)
		free(c);
}

static void on_socket(void *arg, int fd, unsigned events)
{
	struct ws_conn *c = arg;

	c->busy = true;
	work_socket(c, events);
	settle(c);
}

static void on_task(void *arg)
{
	struct ws_conn *c = arg;

	c->busy = true;
	work_task(c);
	settle(c);
}

static void on_ping_timer(void *arg)
{
	struct ws_conn *c = arg;

	/* A full queue shows whether the peer lives just as well. */
	if (c->state == WS_OPEN && !c->ended && !c->over_mark)
		write_frame(c, WS_PING, VIEW_NONE, VIEW_NONE);
}

/* So late only when we were stopped ourselves, as in a paused sandbox: the peer may have spoken
 * meanwhile, and must be heard before it is judged. */
static bool was_stopped(const struct ws_conn *c, uint64_t quiet_ms)
{
	return quiet_ms >= c->o.read_timeout_ms + STOPPED_MS;
}

static void on_read_timer(void *arg)
{
	struct ws_conn *c = arg;
	uint64_t now_us = loop_now_us(c->loop), quiet_ms = (now_us - c->last_read_us) / 1000;

	if (c->paused && c->state == WS_OPEN)
		loop_timer_start(c->read_timer, c->o.read_timeout_ms);
	else if (was_stopped(c, quiet_ms)) {
		c->last_read_us = now_us;
		on_ping_timer(c);
		loop_timer_start(c->read_timer, c->o.read_timeout_ms);
	} else if (quiet_ms >= c->o.read_timeout_ms)
		end_later(c, WS_CLOSE_ABNORMAL, VIEW("the peer was silent for too long"));
	else
		loop_timer_start(c->read_timer, c->o.read_timeout_ms - quiet_ms);
}

static void on_write_timer(void *arg)
{
	end_later(arg, WS_CLOSE_ABNORMAL, VIEW("the peer takes no bytes"));
}

static void on_close_timer(void *arg)
{
	end_later(arg, WS_CLOSE_ABNORMAL, VIEW("the peer did not answer the close frame"));
}

/* ---- life ---- */

struct ws_conn *ws_conn_new(struct loop *l, int fd, struct buf *rest, bool is_client,
			    const struct ws_options *o, const struct ws_events *events, void *arg)
{
	struct ws_conn *c = mem_new(struct ws_conn);
	struct err e = ERR_NONE;

	c->loop = l;
	c->o = *o;
	c->events = events;
	c->arg = arg;
	c->fd = fd;
	c->is_client = is_client;
	c->last_read_us = loop_now_us(l);
	c->task = loop_task_new(l, on_task, c);
	c->ping_timer = loop_timer_new(l, on_ping_timer, c);
	c->read_timer = loop_timer_new(l, on_read_timer, c);
	c->write_timer = loop_timer_new(l, on_write_timer, c);
	c->close_timer = loop_timer_new(l, on_close_timer, c);
	sendq_init(&c->out, o->queue_high + QUEUE_SLACK);
	ws_reader_init(&c->reader, /* from_client= */ !is_client, o->message_max);
	if (rest)
		ws_reader_take(&c->reader, rest);
	if (loop_fd_new(l, fd, on_socket, c, &c->watch, &e) < 0)
		end_later(c, WS_CLOSE_ABNORMAL, view_of(e.msg));
	if (o->ping_ms)
		loop_timer_repeat(c->ping_timer, o->ping_ms);
	if (o->read_timeout_ms)
		loop_timer_start(c->read_timer, o->read_timeout_ms);
	loop_task_post(c->task);
	update_wants(c);
	return c;
}

void ws_conn_close(struct ws_conn *c, unsigned code, const char *reason)
{
	if (c->state != WS_OPEN || c->ended)
		return;
	send_close(c, code, view_of(reason));
	c->state = WS_CLOSE_SENT;
	loop_timer_stop(c->ping_timer);
	loop_timer_start(c->close_timer, CLOSE_MS);
	loop_task_post(c->task);
	update_wants(c);
}

void ws_conn_pause(struct ws_conn *c)
{
	c->paused = true;
	update_wants(c);
}

void ws_conn_resume(struct ws_conn *c)
{
	if (!c->paused)
		return;
	c->paused = false;
	c->last_read_us = loop_now_us(c->loop);
	loop_task_post(c->task);
	update_wants(c);
}

void ws_conn_free(struct ws_conn *c)
{
	if (!c)
		return;
	c->freed = true;
	c->state = WS_OVER;
	loop_fd_free(c->watch);
	fd_close(c->fd);
	loop_task_free(c->task);
	loop_timer_free(c->ping_timer);
	loop_timer_free(c->read_timer);
	loop_timer_free(c->write_timer);
	loop_timer_free(c->close_timer);
	sendq_done(&c->out);
	ws_reader_done(&c->reader);
	if (!c->busy)
		free(c);
}
