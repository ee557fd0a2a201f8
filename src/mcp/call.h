/*
 * mcp/call.h - one request that takes time: its arguments, its result, how it fails, how it is
 * cancelled.  Made by a session, run by a worker.
 */
#pragma once

#include <opensandbox/opensandbox.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/macro.h"
#include "codec/json_writer.h"
#include "codec/jsonrpc.h"

struct mcp;
struct registry_box;
struct session;
struct tool;

/* Where messages for the client go, from any thread.  `last`: the request is over; the message is
 * empty if it was cancelled. */
typedef void sink_fn(void *arg, struct view message, bool last);

struct sink {
	sink_fn *send;
	void *arg;
};

struct call {
	struct list of_session, of_pool; /* links */
	struct session *session;
	struct mcp *mcp;
	struct sink sink;
	struct jsonrpc_msg msg;
	const struct tool *tool;  /* NULL: a resource is read */
	const struct json *args;  /* or NULL */
	const struct json *token; /* of progress, or NULL */
	struct arena arena;	  /* for strings of the arguments */

	osb_cancel *cancel;
	atomic_bool cancelled;
	osb_call how; /* for the library */
	osb_error e;

	struct registry_box *box; /* given back at the end */
	struct buf result;	  /* the structured content, or a resource's contents */
	struct json_writer w;	  /* on it */
	struct buf pictures;	  /* content items behind the text, a line each */
	char why[1024];		  /* "" = it did not fail */
	int code;		  /* of JSON-RPC, for resources */

	uint64_t progress_n, progress_us;
};

struct call *call_new(struct session *s, struct mcp *mcp, struct jsonrpc_msg *msg_taken,
		      struct sink sink);
void call_free(struct call *c);
void call_cancel(struct call *c);

/* Runs it and sends the answer. */
void call_run(struct call *c);
/* Sends a failure without running it. */
void call_refuse(struct call *c, const char *why);

/* ---- for tools; failures return -1 ---- */

int call_fail(struct call *c, const char *fmt, ...) osb_printf(2, 3);
/* c->e as a sentence with what to do about it. */
int call_fail_osb(struct call *c);
/* 0, or call_fail_osb() for a negative result. */
int call_check(struct call *c, int result);

/* A message for the client, if it wants any; those that come too often are left out. */
enum call_progress_flags { CALL_PROGRESS_ALWAYS = 1 };
void call_progress(struct call *c, const char *message, unsigned flags);

/* The sandbox that `sandbox_id` names: connected, or connect_if_missing.  NULL after a failure. */
osb_sandbox *call_sandbox(struct call *c);
/* The same for one that need not be connected. */
osb_sandbox *call_any_sandbox(struct call *c);
/* Connects, whatever the arguments say. */
osb_sandbox *call_connect(struct call *c, const char *id);

/* Arguments that were checked; `otherwise` where there is none.  Strings live as long as the call.
 */
const char *arg_str(struct call *c, const char *name, const char *otherwise);
const char *arg_str_in(struct call *c, const struct json *object, const char *name,
		       const char *otherwise);
struct view arg_text(const struct json *object, const char *name);
int64_t arg_int(const struct json *object, const char *name, int64_t otherwise);
double arg_number(const struct json *object, const char *name, double otherwise);
bool arg_bool(const struct call *c, const char *name, bool otherwise);
const char *const *arg_strings(struct call *c, const struct json *object, const char *name);
osb_pair *arg_pairs(struct call *c, const struct json *object, const char *name, size_t *ret_n);

/* ---- members of results ---- */

void put_text(struct json_writer *w, const char *key, const char *text); /* NULL is null */
void put_number(struct json_writer *w, const char *key, double n);
void put_null(struct json_writer *w, const char *key);
int call_status(struct call *c, const char *word); /* {"status":word}; 0 */
