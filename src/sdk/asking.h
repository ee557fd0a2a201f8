/*
 * sdk/asking.h - a request put together: where it goes, what goes along, what comes back.
 *
 * What cannot be put together (a path that is too long, an empty id) makes the request fail when
 * it is made: nothing here has to be checked on the way.
 */
#pragma once

#include <opensandbox/sandbox.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/macro.h"
#include "codec/http1.h"
#include "sdk/ask.h"
#include "sdk/document.h"

struct place;

#define TARGET_MAX (64u << 10)

#define ASKING_HEADERS_MAX 32

/* A request that is being put together. */
struct asking {
	struct ask ask;
	struct place *place;
	struct http1_header headers[ASKING_HEADERS_MAX];
	struct ask_part body;
	struct buf target;
};

/* To the server's lifecycle API.  To be ended with asking_done(). */
void asking_server(osb_client *c, const char *method, const char *path, struct asking *ret);

/* To execd or egress of a sandbox.  To be ended with asking_done(), also after a failure. */
osb_must_check int asking_exec(osb_sandbox *s, uint16_t port, const char *method, const char *path,
			       const osb_call *call, struct asking *ret, osb_error *e);
/* "/text" percent-encoded, then `rest` as it is. */
void asking_segment(struct asking *q, const char *text, const char *rest);
void asking_number(struct asking *q, const char *name, int64_t n);	  /* 0: left out */
void asking_param(struct asking *q, const char *name, const char *value); /* NULL: left out */
void asking_header(struct asking *q, const char *name, const char *value);
void asking_json(struct asking *q, const struct buf *body);
void asking_done(struct asking *q);

/* Asked, and nothing wanted but success. */
osb_must_check int asking_do(osb_client *c, struct asking *q, const osb_call *call, osb_error *e);

/* Asked, and an object made of the answer. */
osb_must_check int asking_object(osb_client *c, struct asking *q, const osb_call *call, size_t size,
				 object_read_fn *read, void **ret, osb_error *e);

/* Asked, and the answer's text wanted: to be freed with osb_free(). */
osb_must_check int asking_text(osb_client *c, struct asking *q, const osb_call *call, char **ret,
			       osb_error *e);

/* Asked, and an id wanted: the member `key` of the answer, into OSB_ID_MAX bytes. */
osb_must_check int asking_id(osb_client *c, struct asking *q, const osb_call *call, const char *key,
			     char *ret, osb_error *e);
