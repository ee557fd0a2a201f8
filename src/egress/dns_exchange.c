/*
 * egress/dns_exchange.c - a connected socket per exchange: the kernel chooses its port and
 * drops whatever comes from elsewhere.
 */
#include "egress/dns_exchange.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/rand.h"
#include "egress/egress.h"
#include "net/loop.h"

#define DATAGRAM_MAX  4096 /* more than what is asked for */
#define STRANGERS_MAX 64   /* somebody guesses */

static void on_ready(void *arg, int fd, unsigned events);

static socklen_t address_of(const struct name_server *s, struct sockaddr_storage *ret)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)ret;
	struct sockaddr_in *four = (struct sockaddr_in *)ret;

	memset(ret, 0, sizeof(*ret));
	if (s->v6) {
		six->sin6_family = AF_INET6;
		six->sin6_port = htons(s->port);
		memcpy(&six->sin6_addr, s->bytes, 16);
		return sizeof(*six);
	}
	four->sin_family = AF_INET;
	four->sin_port = htons(s->port);
	memcpy(&four->sin_addr, s->bytes, 4);
	return sizeof(*four);
}

static int open_socket(struct dns_exchange *x, int kind, struct err *e)
{
	static const int one = 1;
	struct sockaddr_storage to;
	socklen_t len = address_of(x->to, &to);
	int r;

	x->fd = socket(to.ss_family, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (x->fd < 0)
		return err_set(e, -errno, "socket for a name server: %m");
	r = egress_mark(x->egress, x->fd, e);
	if (r < 0)
		return r;
	if (kind == SOCK_STREAM)
		(void)setsockopt(x->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(x->fd, (struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS)
		return err_set(e, -errno, "ask a name server: %m");
	r = loop_fd_new(x->egress->loop, x->fd, on_ready, x, &x->watch, e);
	if (r == 0)
		loop_fd_want(x->watch, kind == SOCK_STREAM ? LOOP_WRITE : LOOP_READ);
	return r;
}

static void close_socket(struct dns_exchange *x)
{
	loop_fd_free(x->watch);
	x->watch = NULL;
	x->fd = fd_close(x->fd);
}

bool dns_exchange_active(const struct dns_exchange *x)
{
	return x->fd >= 0;
}

void dns_exchange_stop(struct dns_exchange *x)
{
	close_socket(x);
	buf_done(&x->io);
}

static int start_udp(struct dns_exchange *x, struct err *e)
{
	osb_cleanup(buf_done) struct buf query = BUF_INIT(DNS_UDP_MIN);
	int r = dns_put_query(x->asker, x->id, x->edns, &query);

	if (r < 0)
		return err_set(e, r, "the question is too long");
	r = open_socket(x, SOCK_DGRAM, e);
	if (r == 0 && send(x->fd, buf_view(&query).p, query.len, MSG_NOSIGNAL) < 0)
		r = err_set(e, -errno, "ask a name server: %m");
	return r;
}

int dns_exchange_start(struct dns_exchange *x, struct err *e)
{
	int r;

	x->fd = -1;
	x->watch = NULL;
	x->tcp = x->sent = false;
	x->strangers = 0;
	x->io = BUF_INIT(2 + DNS_MESSAGE_MAX);
	rand_bytes(&x->id, sizeof(x->id));
	r = start_udp(x, e);
	if (r < 0)
		dns_exchange_stop(x);
	return r;
}

/* ---- the end ---- */

static void fail(struct dns_exchange *x, const struct err *e)
{
	dns_exchange_stop(x);
	x->fn(x, NULL, VIEW_NONE, e);
}

static void fail_errno(struct dns_exchange *x, int code)
{
	struct err e = ERR_NONE;

	err_set(&e, code, "a name server: %s", strerror(-code));
	fail(x, &e);
}

static void start_tcp(struct dns_exchange *x)
{
	struct err e = ERR_NONE;
	char *length;
	int r;

	close_socket(x);
	x->tcp = true;
	buf_clear(&x->io);
	rand_bytes(&x->id, sizeof(x->id));
	r = buf_append(&x->io, "\0\0", 2);
	if (r == 0)
		r = dns_put_query(x->asker, x->id, x->edns, &x->io);
	if (r < 0) {
		fail_errno(x, r);
		return;
	}
	length = x->io.mem + x->io.start;
	length[0] = (char)((x->io.len - 2) >> 8);
	length[1] = (char)(x->io.len - 2);
	if (open_socket(x, SOCK_STREAM, &e) < 0)
		fail(x, &e);
}

/* False: it was not for us, and nothing has happened. */
static bool take_message(struct dns_exchange *x, struct view message)
{
	struct dns_reply reply;
	struct err e = ERR_NONE;
	struct view kept;
	int r;

	buf_clear(x->kept);
	r = dns_reply_read(message, x->asker, x->id, x->kept, &reply, &e);
	if (r == -ENOMSG && !x->tcp)
		return false;
	if (r < 0) {
		fail(x, &e);
		return true;
	}
	if (reply.truncated && !x->tcp) {
		start_tcp(x);
		return true;
	}
	if (reply.truncated) {
		fail_errno(x, -EPROTO);
		return true;
	}
	kept = buf_view(x->kept);
	dns_exchange_stop(x);
	x->fn(x, &reply, kept, NULL);
	return true;
}

/* ---- the sockets ---- */

static void read_datagrams(struct dns_exchange *x)
{
	char bytes[DATAGRAM_MAX];

	while (x->strangers < STRANGERS_MAX) {
		ssize_t n = recv(x->fd, bytes, sizeof(bytes), MSG_TRUNC);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0) {
			fail_errno(x, -errno);
			return;
		}
		if ((size_t)n > sizeof(bytes)) {
			start_tcp(x);
			return;
		}
		if (take_message(x, view_mem(bytes, (size_t)n)))
			return;
		x->strangers++;
	}
	/* Whoever sends so much that is no answer may guess the next id. */
	start_tcp(x);
}

static void write_stream(struct dns_exchange *x)
{
	struct view left = buf_view(&x->io);
	ssize_t n = send(x->fd, left.p, left.len, MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		fail_errno(x, -errno);
		return;
	}
	buf_consume(&x->io, (size_t)n);
	if (x->io.len > 0)
		return;
	x->sent = true;
	loop_fd_want(x->watch, LOOP_READ);
}

static void read_stream(struct dns_exchange *x)
{
	struct view got = buf_view(&x->io);
	size_t want = 2;
	char *room;
	ssize_t n;

	if (got.len >= 2)
		want += (size_t)(uint8_t)got.p[0] << 8 | (uint8_t)got.p[1];
	room = buf_reserve(&x->io, want - got.len);
	if (!room) {
		fail_errno(x, -E2BIG);
		return;
	}
	n = recv(x->fd, room, want - got.len, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		fail_errno(x, n == 0 ? -EPIPE : -errno);
		return;
	}
	buf_commit(&x->io, (size_t)n);
	got = buf_view(&x->io);
	if (got.len == 2 && got.p[0] == 0 && got.p[1] == 0)
		fail_errno(x, -EPROTO);
	else if (got.len > 2 && got.len == want)
		(void)take_message(x, view_skip(got, 2)); /* over TCP nobody else can speak */
}

static void on_ready(void *arg, int fd, unsigned events)
{
	struct dns_exchange *x = arg;

	(void)fd;
	(void)events;
	if (!x->tcp)
		read_datagrams(x);
	else if (!x->sent)
		write_stream(x);
	else
		read_stream(x);
}
