/*
 * net/http_int.h - what the files of the HTTP server share: servers, connections, exchanges.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "codec/chunked.h"
#include "net/http_server.h"

struct iovec;
struct loop_fd;
struct loop_task;
struct loop_timer;

struct http_listener {
	struct list link;
	struct http_server *server;
	int fd;
	struct loop_fd *watch;
};

struct http_server {
	struct loop *loop;
	struct http_limits limits;
	http_handler_fn *handler;
	void *app;
	struct list listeners;
	struct list conns;
	size_t conns_n;
	http_accepted_fn *accepted; /* or NULL */
	void *accepted_arg;
	uint16_t port;
	int spare_fd;		      /* given up for a moment when descriptors run out */
	char *scratch;		      /* what was read just now; one for all connections */
	struct loop_timer *timer;     /* for the earliest deadline */
	uint64_t timer_due_us;	      /* 0 = off */
	struct http_exchange *spares; /* memory for the next ones, chained by `user` */
	size_t spares_n;
	struct loop_task *kick; /* connections that have input left over */
	struct list kicked;
	uint64_t date_s;
	char date[40];
	bool draining;
	void (*drained)(void *arg);
	void *drained_arg;
	struct loop_timer *drain_timer;
};

enum http_phase {
	PHASE_HEAD,   /* waits for a request */
	PHASE_BUSY,   /* an exchange is under way */
	PHASE_DRAIN,  /* the answer has ended; the rest of the request's body is dropped */
	PHASE_LINGER, /* everything is sent; the client shall see it before the connection goes */
};

enum http_framing { FRAMING_NONE, FRAMING_SIZED, FRAMING_CHUNKED };

struct http_conn {
	struct list link;      /* in server.conns */
	struct list kick_link; /* in server.kicked */
	struct http_server *server;
	int fd;
	struct loop_fd *watch;
	enum http_phase phase;
	struct http_exchange *x; /* PHASE_BUSY */
	uint64_t deadline_us;	 /* 0 = none */
	/* input */
	struct buf in;	  /* read and not yet used */
	struct view rest; /* the part of the input that is being worked on */
	size_t scanned;	  /* of a head that is not complete */
	enum http_framing framing;
	uint64_t body_left;
	struct chunked chunked;
	bool body_done;
	size_t dropped;	    /* bytes of an unwanted body */
	bool no_more_input; /* the client has stopped sending */
	/* output */
	struct buf out;
	bool blocked; /* the kernel takes no more for now */
	int file_fd;  /* being sent, after `out` */
	uint64_t file_offset, file_left;
	bool close_after;
	bool broken; /* the client takes nothing any more: what is written is dropped */
	/* safety */
	unsigned busy; /* a function of ours is on the stack: free later */
	bool dead;
	bool secure; /* the client speaks TLS, with somebody before us */
	char peer[48];
	void *owner; /* of http_server_adopt_for(), or NULL */
	void (*closed)(void *owner);
};

enum http_conn_flags { HTTP_CONN_REFUSE = 1, HTTP_CONN_SECURE = 2 };

enum http_body_mode { BODY_UNASKED, BODY_COLLECT, BODY_STREAM, BODY_OVER };

enum http_reply_state { REPLY_NONE, REPLY_BEGUN, REPLY_ENDED };

struct http_exchange {
	struct http_conn *conn;
	struct arena arena;
	struct http1_head head;
	struct view path, query;
	void *user;
	http_gone_fn *gone;
	void *gone_arg;
	/* body */
	enum http_body_mode body_mode;
	bool body_paused;
	bool end_told;
	size_t body_max;
	http_body_fn *body_fn;
	void *body_arg;
	struct buf collected;
	/* answer */
	enum http_reply_state reply;
	bool chunks;   /* framed by us */
	bool bodyless; /* HEAD, 204, 304 */
	bool sized;
	uint64_t left; /* of a sized answer */
	struct buf headers;
	http_drained_fn *drained;
	void *drained_arg;
	bool over_mark;
};

/* http_conn.c */
/* `peer` is the client's address; NULL = the socket knows.  NULL: it could not be watched, or was
 * refused. */
struct http_conn *http_conn_new(struct http_server *s, int fd, const char *peer, unsigned flags);
void http_conn_close(struct http_conn *c);     /* cuts; tells `gone` */
void http_conn_expired(struct http_conn *c);   /* its deadline has passed */
void http_conn_run(struct http_conn *c);       /* works on input that is left over (http_input.c) */
void http_conn_update(struct http_conn *c);    /* what to wait for, and how long */
void http_conn_settle(struct http_conn *c);    /* after an exchange or its output moved on */
void http_conn_kick(struct http_conn *c);      /* http_conn_run() soon, from an empty stack */
void http_conn_detach(struct http_conn *c);    /* gives up the fd without closing it */
void http_conn_enter(struct http_conn *c);     /* keeps the memory until http_conn_leave() */
bool http_conn_leave(struct http_conn *c);     /* false: it is gone */
void http_conn_want_body(struct http_conn *c); /* the handler asked for the body (http_input.c) */

void http_conn_tell_gone(struct http_conn *c); /* the handler learns that its client has gone */
void http_conn_restart_patience(struct http_conn *c);

/* http_input.c */
void http_input_work(struct http_conn *c, struct view input);
void http_input_refuse(struct http_conn *c, int status, const char *message);

/* http_out.c */
void http_out_write(struct http_conn *c, const struct iovec *iov, size_t n);
void http_out_flush(struct http_conn *c);
bool http_out_empty(const struct http_conn *c);
void http_out_error(struct http_conn *c, int status, const char *code, const char *message);

/* http_server.c */
char *http_server_scratch(struct http_server *s, size_t *ret_size);
void http_server_deadline(struct http_server *s, uint64_t due_us);
void http_server_forget(struct http_conn *c);
const char *http_server_date(struct http_server *s);

/* http_reply.c */
struct http_exchange *http_exchange_new(struct http_conn *c);
void http_exchange_free(struct http_exchange *x);
void http_exchange_drop_spares(struct http_server *s);
