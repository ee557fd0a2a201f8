/*
 * sdk/sandbox_int.h - a sandbox's handle, and requests to the server and to what runs in it.
 */
#pragma once

#include <opensandbox/sandbox.h>
#include <pthread.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/macro.h"
#include "base/view.h"
#include "codec/http1.h"
#include "sdk/ask.h"

struct document;
struct json;
struct place;

struct osb_sandbox {
	osb_client *client;
	char *id;
	pthread_mutex_t lock;	     /* of what follows */
	struct place *exec, *egress; /* NULL = not asked yet */
};

/* ---- the server ---- */

#define TARGET_MAX (64u << 10)

/* "/sandboxes/<id>" and `suffix`. */
osb_must_check int sandbox_target(const osb_sandbox *s, const char *suffix, struct buf *out);

/* A request whose answer says nothing more. */
osb_must_check int sandbox_do(osb_sandbox *s, const char *method, const char *suffix,
			      const osb_call *call, osb_error *e);

/* From an object of the server's; what it points to is the document's. */
void sandbox_info_read(struct document *d, const struct json *v, osb_sandbox_info *ret);

/* ---- what runs in it ---- */

#define EXEC_HEADERS_MAX 32

/* A request to execd or egress: where it goes and what must go along is filled in. */
struct exec_ask {
	struct ask ask;
	struct place *place;
	struct http1_header headers[EXEC_HEADERS_MAX];
	struct ask_part body;
	struct buf target;
};

/* To be ended with exec_ask_done(), also after a failure. */
osb_must_check int exec_ask_begin(osb_sandbox *s, uint16_t port, const char *method,
				  const char *path, const osb_call *call, struct exec_ask *ret,
				  osb_error *e);
void exec_ask_query(struct exec_ask *q, const char *name, const char *value); /* NULL: left out */
void exec_ask_header(struct exec_ask *q, const char *name, const char *value);
void exec_ask_json(struct exec_ask *q, const struct buf *body);
void exec_ask_done(struct exec_ask *q);

/* Asked, and nothing wanted but success. */
osb_must_check int exec_ask_do(osb_sandbox *s, struct exec_ask *q, const osb_call *call,
			       osb_error *e);

void place_drop(struct place *p); /* accepts NULL */
