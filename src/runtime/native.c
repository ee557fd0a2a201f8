/*
 * runtime/native.c - asks the warden.
 *
 * Every request is kept until it is answered.  When the warden dies, the requests outlive it: a
 * successor first adopts what runs and removes what nobody claims, among it whatever a lost create
 * left half-made, and then gets them again.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/warden_mounts.h"
#include "codec/warden_msg.h"
#include "net/loop.h"
#include "runtime/runtime.h"
#include "sys/memfd.h"
#include "sys/seqpacket.h"

#define MESSAGES_PER_TURN 64

struct request {
	struct list link; /* in native.queue until sent */
	struct warden_msg msg;
	int fds[2];  /* to send along, or -1 */
	bool settle; /* part of the adoption: goes ahead of the rest and dies with its warden */
	void *arg;
	union {
		runtime_done_fn *done;
		runtime_create_fn *create;
		runtime_connect_fn *connect;
		runtime_stats_fn *stats;
		runtime_netwatch_fn *netwatch;
	};
};

struct native {
	struct runtime base;
	struct loop *loop;
	int fd;
	struct loop_fd *watch;
	bool settled; /* adoption is over: ordinary requests may go */
	const struct runtime_events *events;
	void *arg;
	uint64_t next_serial;
	struct map *sent; /* serial -> request */
	struct list queue;
};

static struct view serial_key(const uint64_t *serial)
{
	return view_mem(serial, sizeof(*serial));
}

static void request_free(struct request *q)
{
	list_remove(&q->link);
	for (size_t i = 0; i < ARRAY_LEN(q->fds); i++)
		fd_close(q->fds[i]);
	free(q);
}

/* Calls back with a failure. */
static void fail(struct request *q, const struct err *e)
{
	switch (q->msg.kind) {
	case WARDEN_CREATE:
		q->create(q->arg, NULL, e);
		break;
	case WARDEN_CONNECT:
		q->connect(q->arg, -1, e);
		break;
	case WARDEN_STATS:
		q->stats(q->arg, NULL, e);
		break;
	case WARDEN_NETWATCH:
		q->netwatch(q->arg, NULL, e);
		break;
	default:
		q->done(q->arg, e);
	}
}

/* All of them, or it is a failure. */
static void hand_over(struct request *q, int fds[SEQPACKET_MAX_FDS])
{
	struct err e = ERR_NONE;

	_Static_assert(RUNTIME_NET_FDS == (int)WARDEN_NETWATCH_FDS, "the same in the same order");
	if (fds[RUNTIME_NET_FDS - 1] >= 0) {
		q->netwatch(q->arg, fds, NULL);
		return;
	}
	seqpacket_close(fds, 0);
	err_set(&e, -EPROTO, "the warden sent too few sockets");
	fail(q, &e);
}

/* Descriptors that it takes are taken out of `fds`. */
static void succeed(struct request *q, const struct warden_msg *m, int fds[SEQPACKET_MAX_FDS])
{
	struct runtime_handle handle = {.pid = m->process.pid, .start_time = m->process.start_time};
	struct runtime_stats stats;

	switch (q->msg.kind) {
	case WARDEN_CREATE:
		q->create(q->arg, &handle, NULL);
		break;
	case WARDEN_CONNECT:
		q->connect(q->arg, take_fd(fds[0]), NULL);
		break;
	case WARDEN_NETWATCH:
		hand_over(q, fds);
		for (size_t i = 0; i < RUNTIME_NET_FDS; i++)
			fds[i] = -1;
		break;
	case WARDEN_STATS:
		stats = (struct runtime_stats){
			.cpu_usec = m->stats.cpu_usec,
			.memory_bytes = m->stats.memory_bytes,
			.memory_peak_bytes = m->stats.memory_peak_bytes,
			.memory_limit_bytes = m->stats.memory_limit_bytes,
			.pids = m->stats.pids,
			.oom_kills = m->stats.oom_kills,
		};
		q->stats(q->arg, &stats, NULL);
		break;
	default:
		q->done(q->arg, NULL);
	}
}

static void detach(struct native *n);

static size_t fds_n(const struct request *q)
{
	size_t n = 0;

	while (n < ARRAY_LEN(q->fds) && q->fds[n] >= 0)
		n++;
	return n;
}

/* Sends what may be sent; waits for room when the warden is behind. */
static void pump(struct native *n)
{
	bool full = false;

	list_each_safe (it, next, &n->queue) {
		struct request *q = list_entry(it, struct request, link);
		struct err e = ERR_NONE;
		int r;

		if (n->fd < 0)
			return;
		if (!q->settle && !n->settled)
			continue;
		r = seqpacket_send(n->fd, warden_msg_view(&q->msg), q->fds, fds_n(q), &e);
		if (r == -EAGAIN) {
			full = true;
			break;
		}
		if (r < 0) {
			detach(n);
			return;
		}
		list_remove(&q->link);
		map_put(n->sent, serial_key(&q->msg.serial), q);
	}
	if (n->watch)
		loop_fd_want(n->watch, LOOP_READ | (full ? LOOP_WRITE : 0));
}

/* Back into the queue, in the order in which they were asked. */
static void requeue_sent(struct native *n)
{
	struct view key;
	void *value;
	size_t pos = 0;

	while (map_next(n->sent, &pos, &key, &value)) {
		struct request *q = value;
		struct list *at = n->queue.next;

		while (at != &n->queue &&
		       list_entry(at, struct request, link)->msg.serial < q->msg.serial)
			at = at->next;
		list_insert_before(at, &q->link);
	}
	map_free(n->sent);
	n->sent = map_new();
}

static void detach(struct native *n)
{
	struct err gone = ERR_NONE;

	loop_fd_free(take_ptr(n->watch));
	n->fd = fd_close(n->fd);
	n->settled = false;
	requeue_sent(n);
	err_set(&gone, -EPIPE, "the warden has gone");
	list_each_safe (it, next, &n->queue) {
		struct request *q = list_entry(it, struct request, link);

		if (!q->settle)
			continue;
		list_remove(&q->link);
		fail(q, &gone);
		request_free(q);
	}
}

static void answered(struct native *n, const struct warden_msg *m, int fds[SEQPACKET_MAX_FDS])
{
	struct request *q = map_remove(n->sent, serial_key(&m->serial));
	struct err e = ERR_NONE;

	if (!q)
		return;
	if (m->kind == WARDEN_FAILED) {
		err_set(&e, m->failed.code < 0 ? m->failed.code : -EIO, "%s", m->failed.text);
		/* Killing what is gone, asked twice because a warden died in between, is done. */
		if (q->msg.kind == WARDEN_KILL && e.code == -ENOENT)
			q->done(q->arg, NULL);
		else
			fail(q, &e);
	} else {
		if (q->msg.kind == WARDEN_LIST_END)
			n->settled = true;
		succeed(q, m, fds);
	}
	request_free(q);
}

static void greeted(struct native *n, const struct warden_msg *m)
{
	n->base.capabilities = m->hello.capabilities;
	snprintf(n->base.missing, sizeof(n->base.missing), "%s", m->hello.missing);
	n->events->ready(n->arg);
}

static void take_message(struct native *n, const struct warden_msg *m, int fds[SEQPACKET_MAX_FDS])
{
	switch (m->kind) {
	case WARDEN_HELLO:
		greeted(n, m);
		break;
	case WARDEN_EXITED:
		n->events->exited(n->arg, m->id, m->exited.status, m->exited.oom != 0);
		break;
	case WARDEN_OOM:
		n->events->oom(n->arg, m->id);
		break;
	default:
		answered(n, m, fds);
	}
}

/* 1 = one message was taken, 0 = none there, -errno = the connection is over. */
static int receive_one(struct native *n)
{
	char datagram[sizeof(struct warden_msg)];
	int fds[SEQPACKET_MAX_FDS], len;
	struct err e = ERR_NONE;
	struct warden_msg m;

	len = seqpacket_receive(n->fd, datagram, sizeof(datagram), fds, &e);
	if (len == -EAGAIN)
		return 0;
	if (len <= 0)
		return -EPIPE;
	if (warden_msg_parse(view_mem(datagram, (size_t)len), &m, &e) == 0)
		take_message(n, &m, fds);
	seqpacket_close(fds, 0);
	return e.code < 0 ? -EPROTO : 1;
}

static void ready(void *arg, int fd, unsigned events)
{
	struct native *n = arg;

	(void)fd;
	for (int i = 0; i < MESSAGES_PER_TURN && n->fd >= 0; i++) {
		int r = receive_one(n);

		if (r == 0)
			break;
		if (r < 0) {
			detach(n);
			return;
		}
	}
	if (events & LOOP_WRITE || n->fd >= 0)
		pump(n);
}

void runtime_native_attach(struct runtime *r, int warden_fd)
{
	struct native *n = container_of(r, struct native, base);
	struct err e = ERR_NONE;

	detach(n);
	if (loop_fd_new(n->loop, warden_fd, ready, n, &n->watch, &e) < 0) {
		fd_close(warden_fd);
		return;
	}
	n->fd = warden_fd;
	loop_fd_want(n->watch, LOOP_READ);
}

static struct request *ask(struct native *n, enum warden_kind kind, const char *id, void *arg)
{
	struct request *q = mem_new(struct request);

	warden_msg_init(&q->msg, kind, ++n->next_serial, id);
	q->fds[0] = q->fds[1] = -1;
	q->arg = arg;
	list_push_back(&n->queue, &q->link);
	return q;
}

static void fill_limits(struct warden_limits *to, const struct runtime_limits *from)
{
	*to = (struct warden_limits){
		.memory_bytes = from->memory_bytes,
		.memory_low_bytes = from->memory_low_bytes,
		.cpu_milli = from->cpu_milli,
		.cpu_weight_milli = from->cpu_weight_milli,
		.pids = from->pids,
	};
}

static void fill_volume(struct warden_volume *to, const struct runtime_volume *from)
{
	static const uint32_t kinds[] = {
		[RUNTIME_VOLUME_NAMED] = WARDEN_VOLUME_NAMED,
		[RUNTIME_VOLUME_HOST] = WARDEN_VOLUME_HOST,
		[RUNTIME_VOLUME_MOUNTED] = WARDEN_VOLUME_MOUNTED,
	};

	to->kind = kinds[from->kind];
	to->read_only = from->read_only;
	to->number = from->number;
	snprintf(to->sub_path, sizeof(to->sub_path), "%s", from->sub_path);
	snprintf(to->mount_path, sizeof(to->mount_path), "%s", from->mount_path);
}

static int fill_mounts(struct warden_mounts *m, const struct runtime_spec *spec, struct err *e)
{
	m->host_base = spec->host_base;
	for (size_t i = 0; i < spec->layers_n; i++)
		if (warden_mounts_add_layer(m, spec->layers[i], e) < 0)
			return e->code;
	if (spec->volumes_n > WARDEN_VOLUMES_MAX)
		return err_set(e, -E2BIG, "more than %d volumes", WARDEN_VOLUMES_MAX);
	for (size_t i = 0; i < spec->volumes_n; i++) {
		const struct runtime_volume *v = &spec->volumes[i];

		/* Cut short it would be another path. */
		if (!warden_mounts_sub_path_ok(view_of(v->sub_path)) ||
		    !warden_mounts_path_ok(view_of(v->mount_path)))
			return err_set(e, -EINVAL, "volumes[%zu]: a path that cannot be mounted",
				       i);
		fill_volume(&m->volumes[i], v);
	}
	m->volumes_n = spec->volumes_n;
	return 0;
}

/* The host image alone needs no file. */
static int write_mounts(const struct runtime_spec *spec, int *ret_fd, struct err *e)
{
	osb_cleanup(buf_done) struct buf file = BUF_INIT(WARDEN_MOUNTS_MAX_BYTES);
	osb_cleanup(mem_freep) struct warden_mounts *m = NULL;
	int r;

	if (spec->host_base && spec->layers_n == 0 && spec->volumes_n == 0)
		return 0;
	m = mem_new(struct warden_mounts);
	r = fill_mounts(m, spec, e);
	if (r == 0)
		r = warden_mounts_format(m, &file, e);
	return r < 0 ? r : memfd_of("mounts", buf_view(&file), ret_fd, e);
}

static void native_create(struct runtime *r, const struct runtime_spec *spec, runtime_create_fn *fn,
			  void *arg)
{
	struct native *n = container_of(r, struct native, base);
	osb_cleanup(fd_closep) int start = -1, mounts = -1;
	struct err e = ERR_NONE;
	struct request *q;

	if (memfd_of("start", spec->start_file, &start, &e) < 0 ||
	    write_mounts(spec, &mounts, &e) < 0) {
		fn(arg, NULL, &e);
		return;
	}
	q = ask(n, WARDEN_CREATE, spec->id, arg);
	q->fds[0] = take_fd(start);
	q->fds[1] = take_fd(mounts);
	q->create = fn;
	fill_limits(&q->msg.create.limits, &spec->limits);
	q->msg.create.network = spec->policed	? WARDEN_NET_POLICED
				: spec->network ? WARDEN_NET_NAT
						: WARDEN_NET_NONE;
	snprintf(q->msg.create.hostname, sizeof(q->msg.create.hostname), "%s", spec->hostname);
	pump(n);
}

int runtime_failed_volume(const struct err *e)
{
	int i;

	return sscanf(e->msg, "volumes[%d]: ", &i) == 1 && i >= 0 && i < WARDEN_VOLUMES_MAX ? i
											    : -1;
}

static void simple(struct runtime *r, enum warden_kind kind, const char *id, runtime_done_fn *fn,
		   void *arg)
{
	struct native *n = container_of(r, struct native, base);

	ask(n, kind, id, arg)->done = fn;
	pump(n);
}

static void native_kill(struct runtime *r, const char *id, runtime_done_fn *fn, void *arg)
{
	simple(r, WARDEN_KILL, id, fn, arg);
}

static void native_pause(struct runtime *r, const char *id, runtime_done_fn *fn, void *arg)
{
	simple(r, WARDEN_FREEZE, id, fn, arg);
}

static void native_resume(struct runtime *r, const char *id, runtime_done_fn *fn, void *arg)
{
	simple(r, WARDEN_THAW, id, fn, arg);
}

static void native_adopt(struct runtime *r, const char *id, const struct runtime_handle *h,
			 runtime_done_fn *fn, void *arg)
{
	struct native *n = container_of(r, struct native, base);
	struct request *q = ask(n, WARDEN_ADOPT, id, arg);

	q->settle = true;
	q->done = fn;
	q->msg.process.pid = h->pid;
	q->msg.process.start_time = h->start_time;
	pump(n);
}

static void native_adopt_end(struct runtime *r, runtime_done_fn *fn, void *arg)
{
	struct native *n = container_of(r, struct native, base);
	struct request *q = ask(n, WARDEN_LIST_END, NULL, arg);

	q->settle = true;
	q->done = fn;
	pump(n);
}

static void native_connect(struct runtime *r, const char *id, uint16_t port, runtime_connect_fn *fn,
			   void *arg)
{
	struct native *n = container_of(r, struct native, base);
	struct request *q = ask(n, WARDEN_CONNECT, id, arg);

	q->connect = fn;
	q->msg.connect.port = port;
	pump(n);
}

/* The socket is there before execd is: a connection waits in the kernel until it is accepted. */
static void native_connect_execd(struct runtime *r, const char *id, runtime_connect_fn *fn,
				 void *arg)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct err e = ERR_NONE;
	int fd;

	(void)r;
	snprintf(a.sun_path, sizeof(a.sun_path), "%s/run/execd.sock", id);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		err_set(&e, -errno, "connect to execd: %m");
		fd_close(fd);
		fn(arg, -1, &e);
		return;
	}
	fn(arg, fd, NULL);
}

static void native_stats(struct runtime *r, const char *id, runtime_stats_fn *fn, void *arg)
{
	struct native *n = container_of(r, struct native, base);

	ask(n, WARDEN_STATS, id, arg)->stats = fn;
	pump(n);
}

static void native_netwatch(struct runtime *r, const char *id, runtime_netwatch_fn *fn, void *arg)
{
	struct native *n = container_of(r, struct native, base);

	ask(n, WARDEN_NETWATCH, id, arg)->netwatch = fn;
	pump(n);
}

static void native_forget_layers(struct runtime *r, const uint64_t *layers, size_t n,
				 runtime_done_fn *fn, void *arg)
{
	struct native *native = container_of(r, struct native, base);
	struct request *q = ask(native, WARDEN_FORGET_LAYERS, NULL, arg);

	q->done = fn;
	/* More than fit into a message: all. */
	q->msg.forget.n = n <= WARDEN_FORGET_MAX ? (uint32_t)n : 0;
	memcpy(q->msg.forget.layers, layers, q->msg.forget.n * sizeof(layers[0]));
	pump(native);
}

/* Nobody is called back any more: the program is ending. */
static void native_free(struct runtime *r)
{
	struct native *n = container_of(r, struct native, base);

	loop_fd_free(take_ptr(n->watch));
	n->fd = fd_close(n->fd);
	requeue_sent(n);
	list_each_safe (it, next, &n->queue)
		request_free(list_entry(it, struct request, link));
	map_free(n->sent);
	free(n);
}

static const struct runtime_ops native_ops = {
	.name = "native",
	.create = native_create,
	.kill = native_kill,
	.pause = native_pause,
	.resume = native_resume,
	.adopt = native_adopt,
	.adopt_end = native_adopt_end,
	.connect = native_connect,
	.connect_execd = native_connect_execd,
	.stats = native_stats,
	.netwatch = native_netwatch,
	.forget_layers = native_forget_layers,
	.free = native_free,
};

int runtime_native_new(struct loop *l, const struct runtime_events *events, void *arg,
		       struct runtime **ret, struct err *e)
{
	struct native *n = mem_new(struct native);

	(void)e;
	n->base.ops = &native_ops;
	n->loop = l;
	n->fd = -1;
	n->events = events;
	n->arg = arg;
	n->sent = map_new();
	list_init(&n->queue);
	*ret = &n->base;
	return 0;
}
