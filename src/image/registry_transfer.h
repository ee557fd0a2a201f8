/*
 * image/registry_transfer.h - HTTP requests that run side by side (libcurl's multi interface).
 *
 * A transfer is one request and its answer: no redirects, no authentication, no second try.  Bodies
 * of good answers go to the caller's sink; of others the beginning is kept for people to read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/strv.h"
#include "base/view.h"

struct transfer;
struct transfers;

/* A part of the body; the head is known.  A negative result ends the transfer with that error. */
typedef int transfer_sink_fn(void *arg, const struct transfer *t, struct view bytes, struct err *e);

/* Fills `p` with up to n bytes of the body that is sent: how many, or -errno. */
typedef ssize_t transfer_source_fn(void *arg, char *p, size_t n);

enum transfer_flags {
	TRANSFER_NO_PROXY = 1,	/* whatever the environment says */
	TRANSFER_NO_VERIFY = 2, /* any certificate will do */
};

struct transfer_request {
	const char *method; /* GET, HEAD, POST or PUT */
	const char *url;
	const struct strv *headers; /* "Name: value" */
	enum transfer_flags flags;
	uint64_t range_from; /* ask for what is behind these bytes */
	unsigned stall_s;    /* given up after that long with next to nothing arriving */
	unsigned total_s;    /* given up after that long in any case; 0 = never */
	transfer_sink_fn *sink;
	transfer_source_fn *source; /* NULL: nothing is sent */
	uint64_t source_bytes;
	void *arg; /* of both */
};

struct transfer_head {
	int status;
	char content_type[256];
	char digest[80];       /* Docker-Content-Digest */
	char *location;	       /* or NULL */
	struct buf challenges; /* WWW-Authenticate, joined with ", " */
	bool has_range;	       /* Content-Range was sent: */
	uint64_t range_start, range_total;
	bool has_length;
	uint64_t length; /* Content-Length */
	uint64_t retry_after_s;
};

struct transfer {
	struct transfer_head head;
	struct buf said;   /* the beginning of the body of an answer that is not 2xx */
	struct err failed; /* code 0: there is an answer; -EHOSTUNREACH: the connection */
	bool certificate;  /* failed because of the other side's certificate: no second try */
	bool no_tls;	   /* failed because the other side does not speak TLS */
};

struct transfers *transfers_new(void);
void transfers_free(struct transfers *ts); /* accepts NULL; all its transfers are gone before */

osb_must_check int transfer_start(struct transfers *ts, const struct transfer_request *rq,
				  struct transfer **ret, struct err *e);
void transfer_free(struct transfer *t); /* accepts NULL; ends it if it runs */

/*
 * Runs all of them until `one` is over; until any is over when `one` is NULL; or until
 * `deadline_us`.  Returns it, or NULL.  A transfer is returned once; those that are over while
 * another is waited for come next.
 */
struct transfer *transfers_wait(struct transfers *ts, struct transfer *one, uint64_t deadline_us);

/* Runs all of them until then; none is returned. */
void transfers_idle(struct transfers *ts, uint64_t until_us);
