/*
 * net/http_server.h - HTTP/1.1 server: one exchange is one request and its answer.
 *
 * Life of an exchange: the handler is called when the head is complete.  It reads the body
 * (http_body_*) and answers (http_reply*), now or later.  The exchange is over when the answer
 * was ended (http_reply, http_reply_end, http_reply_file) or when its gone-callback ran,
 * whichever is first: after that the handler must not touch it.  Answers to pipelined
 * requests leave in order: the next request is not read before this answer has ended.
 *
 * Back-pressure: request bytes are read from the socket only as fast as they are consumed;
 * answer bytes are queued, and http_reply_write() says when to stop.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macro.h"
#include "base/view.h"
#include "codec/http1.h"

struct arena;
struct err;
struct loop;
struct http_server;
struct http_exchange;

struct http_limits {
	size_t head_bytes;	 /* 64 KiB */
	size_t arena_bytes;	 /* memory of one request: 1 MiB + heads */
	size_t queue_high_bytes; /* answer bytes queued before the writer is told to stop: 256 KiB
				  */
	unsigned connections;	 /* more are answered 503 and closed: 4096 */
	uint64_t idle_ms;	 /* keep-alive without a request: 75 s; 0 = never */
	uint64_t head_ms;	 /* from the first byte of a head to its end: 10 s */
	uint64_t body_stall_ms;	 /* no byte of a wanted body: 30 s */
	uint64_t write_stall_ms; /* the client takes no byte of an answer: 0 = may wait for ever */
	bool secret;		 /* what clients say is wiped when its memory is given back */
};

extern const struct http_limits http_limits_default;

typedef void http_handler_fn(struct http_exchange *x, void *app);

osb_must_check int http_server_new(struct loop *l, const struct http_limits *limits,
				   http_handler_fn *handler, void *app, struct http_server **ret,
				   struct err *e);

/* Listens; may be called several times.  `fd` is a listening socket and is taken. */
osb_must_check int http_server_listen_fd(struct http_server *s, int fd, struct err *e);
osb_must_check int http_server_listen_tcp(struct http_server *s, const char *ip, uint16_t port,
					  struct err *e); /* ip: "0.0.0.0", "::1", ... */
osb_must_check int http_server_listen_unix(struct http_server *s, const char *path, mode_t mode,
					   struct err *e); /* replaces a stale socket file */

/*
 * Connections may pass somebody else first, who decrypts them: what listeners accept goes to `fn`
 * (taken, non-blocking) instead, and comes back by http_server_adopt(): a socket (taken) on which
 * the client at the address `peer` speaks in the clear, and over https as far as it knows.
 */
typedef void http_accepted_fn(void *arg, int fd);
void http_server_on_accept(struct http_server *s, http_accepted_fn *fn, void *arg);
void http_server_adopt(struct http_server *s, int fd, const char *peer);

/* The port of the last TCP listener (for port 0). */
uint16_t http_server_port(const struct http_server *s);

size_t http_server_connections(const struct http_server *s);

/*
 * Stops accepting, closes idle connections, lets running exchanges end; calls done(arg) when all
 * are over or after `grace_ms`, when the rest is cut.
 */
void http_server_drain(struct http_server *s, uint64_t grace_ms, void (*done)(void *arg),
		       void *arg);
void http_server_free(
	struct http_server *s); /* accepts NULL; cuts everything, no callbacks but `gone` */

/* ---- the request ---- */

const struct http1_head *http_head(const struct http_exchange *x);
struct arena *http_arena(struct http_exchange *x);     /* dies with the exchange */
struct view http_path(const struct http_exchange *x);  /* raw, begins with '/' */
struct view http_query(const struct http_exchange *x); /* raw */
bool http_header(const struct http_exchange *x, const char *name, struct view *ret);
bool http_is_head(
	const struct http_exchange *x); /* method HEAD: body bytes of the answer are dropped */
struct view http_peer(
	const struct http_exchange *x); /* the client's address without port; "" on unix sockets */
const char *http_scheme(const struct http_exchange *x); /* "http" or "https" */

/* Whatever the program wants to hang on the exchange (the router keeps its parameters here). */
void http_set_user(struct http_exchange *x, void *user);
void *http_user(const struct http_exchange *x);

/* Called when the client has gone, or the connection was cut, before the answer ended. */
typedef void http_gone_fn(struct http_exchange *x, void *arg);
void http_on_gone(struct http_exchange *x, http_gone_fn *fn, void *arg);

/* The whole body at once, at most `max` bytes (above it the client gets 413 and fn is never
 * called). */
typedef void http_body_fn(struct http_exchange *x, struct view body, void *arg);
void http_body_collect(struct http_exchange *x, size_t max, http_body_fn *fn, void *arg);

/* The body piece by piece; an empty piece is its end.  Malformed bodies end the connection and
 * call `gone`.  While paused no piece comes and the socket is not read. */
void http_body_stream(struct http_exchange *x, http_body_fn *fn, void *arg);
void http_body_pause(struct http_exchange *x);
void http_body_resume(struct http_exchange *x);

/* ---- the answer ---- */

/* Adds a header to the answer; before it begins.  Name and value are copied; illegal bytes are
 * dropped. */
void http_reply_header(struct http_exchange *x, const char *name, struct view value);

/* The same with one that was parsed, and so has no illegal bytes. */
void http_reply_copy(struct http_exchange *x, const struct http1_header *h);

/* A whole answer.  `content_type` may be NULL.  Content-Length is always sent ("0" too). */
void http_reply(struct http_exchange *x, int status, const char *content_type, struct view body);

/* The envelope {"code":CODE,"message":...}. */
void http_reply_error(struct http_exchange *x, int status, const char *code, const char *fmt, ...)
	osb_printf(4, 5);

/* A streamed answer: begin, write..., end.  `length` -1 = chunked (or until close for HTTP/1.0). */
void http_reply_begin(struct http_exchange *x, int status, int64_t length);

/*
 * Sends or queues all of `bytes`.  Returns true when more may be written now, false when the queue
 * is over its mark: stop, and go on when `drained` is called.  Nothing happens after the client
 * has gone (returns true).
 */
bool http_reply_write(struct http_exchange *x, struct view bytes);
void http_reply_end(struct http_exchange *x);

/* Breaks the answer off: what was queued still leaves, then the connection is closed without the
 * end of the body, so that the client sees that it is incomplete.  The exchange is over. */
void http_reply_cut(struct http_exchange *x);

typedef void http_drained_fn(struct http_exchange *x, void *arg);
void http_on_drained(struct http_exchange *x, http_drained_fn *fn, void *arg);

/* Bytes queued and not yet taken by the kernel. */
size_t http_reply_queued(const struct http_exchange *x);

/*
 * Answers with `length` bytes of `fd` (taken) from `offset`, by sendfile.  Headers as set.  If the
 * file shrinks meanwhile, the connection is closed short.
 */
void http_reply_file(struct http_exchange *x, int status, int fd, uint64_t offset, uint64_t length);

/*
 * Gives the connection up: sends "101 Switching Protocols" with the headers set so far (or, with
 * status 0, nothing at all) and hands out its socket (non-blocking, now the caller's) together with
 * bytes that were read already (copied into *ret_rest, a fresh buffer that the caller ends).  The
 * exchange is over.
 */
struct buf;
int http_upgrade(struct http_exchange *x, int status, struct buf *ret_rest);
