/*
 * mcp/session.h - one client: what it has said, and the calls that it waits for.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"
#include "base/view.h"
#include "mcp/call.h"

struct mcp;
struct session;

struct session *session_new(struct mcp *mcp);
/* Cancels its calls.  Its memory goes when the last of them has ended. */
void session_close(struct session *s); /* accepts NULL */

enum session_took {
	SESSION_NOTHING,  /* no answer is due */
	SESSION_ANSWERED, /* the answer went to the sink */
	SESSION_LATER,	  /* it will, from another thread */
};

enum session_took session_take(struct session *s, struct view message, struct sink sink);
bool session_knows_version(struct view version); /* of the protocol */

/* For what cannot be read at all. */
void session_complain(struct sink sink, int code, const char *why);

/* The call is about to be answered: it cannot be cancelled any more, and its id is free. */
void session_answers(struct session *s, struct call *c);

/* By the pool: the call was answered, and is freed. */
void session_ended(struct session *s, struct call *c);
