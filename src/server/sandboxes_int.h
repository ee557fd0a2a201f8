/*
 * server/sandboxes_int.h - what the service's own files share.
 */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "server/sandboxes.h"

/* Capability bits of the native runtime: WARDEN_CAN_NAT, WARDEN_CAN_POLICE. */
#define SANDBOXES_CAN_NAT    1u
#define SANDBOXES_CAN_POLICE 64u

struct egress_client;
struct expiry;
struct images;
struct pulls;
struct volumes;

#define SANDBOXES_EXPIRED 256 /* remembered, so that whoever asks can be told */

struct sandboxes {
	struct loop *loop;
	const struct config *config;
	struct store *store;
	struct runtime *runtime;
	struct images *images;
	struct pulls *pulls;
	struct volumes *volumes;
	struct egress_client *egress;
	struct expiry *expiry;
	struct map *by_id;
	struct list all;     /* newest first */
	struct list freezes; /* and thaws, under way */
	size_t creating;
	size_t adopting; /* answers still to come */
	bool resumed;	 /* what was pending when an earlier server ended */
	void (*settled)(void *arg);
	void *settled_arg;
	char expired[SANDBOXES_EXPIRED][40]; /* a ring */
	size_t expired_n;
};

/* An operation that waits for the runtime, or for an image. */
struct operation {
	struct sandboxes *service;
	struct sandbox *sandbox;
	sandboxes_fn *fn;
	void *arg;
};

/* Marks the sandbox busy; the end unmarks it, calls back and frees the operation. */
struct operation *sandboxes_begin(struct sandboxes *s, struct sandbox *b, sandboxes_fn *fn,
				  void *arg);
void sandboxes_end(struct operation *op, struct sandbox *b, const struct failure *f);

/* Volumes, then the runtime.  The root is known. */
void sandboxes_start(struct operation *op);

/* A create that has failed: one that nobody was told of leaves nothing, another becomes Failed. */
void sandboxes_not_created(struct operation *op, const char *reason, const struct failure *f);

/* Waits for the image of a sandbox and goes on with it; `op` is NULL when its client was answered
 * long ago. */
void pending_wait(struct sandboxes *s, struct sandbox *b, struct operation *op);
void pending_cancel(struct sandbox *b);	  /* nobody waits any more; harmless if nobody does */
void pending_resume(struct sandboxes *s); /* those that an earlier server has left */

int64_t sandboxes_now_us(void);

/* Writes the record; with an event, both in one commit. */
osb_must_check int sandboxes_save(struct sandboxes *s, struct sandbox *b, struct err *e);
osb_must_check int sandboxes_note(struct sandboxes *s, const struct sandbox *b, const char *kind,
				  const char *reason, const char *message, struct err *e);
osb_must_check int sandboxes_record(struct sandboxes *s, struct sandbox *b, const char *kind,
				    const char *reason, const char *message, struct err *e);

/* Changes the state in memory. */
void sandboxes_become(struct sandbox *b, enum sandbox_state state, const char *reason,
		      const char *message);

/* Puts an operation off until a sandbox that stands still moves again; false if it does not stand
 * still. */
typedef void sandboxes_operation(struct sandboxes *s, struct sandbox *b, sandboxes_fn *fn,
				 void *arg);
bool sandboxes_put_off(struct sandbox *b, sandboxes_operation *what, sandboxes_fn *fn, void *arg);
void sandboxes_forget_waiting(struct sandbox *b);
void sandboxes_forget_freezes(struct sandboxes *s);

void sandboxes_drop(struct sandboxes *s, struct sandbox *b); /* out of every table, and freed */

/* One whose end was told while its create was not over. */
void sandboxes_note_early_end(struct sandboxes *s, const char *id);

/* Kills what no record knows; nobody waits for it. */
void sandboxes_kill_unseen(struct sandboxes *s, const char *id);
