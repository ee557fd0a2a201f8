/*
 * server/sandbox.h - one sandbox as the server knows it, and the spec it was made from.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/macro.h"
#include "base/strv.h"
#include "base/view.h"
#include "runtime/runtime.h"
#include "server/volume.h"

struct err;
struct json;
struct json_writer;
struct pending;
struct store_sandbox;

enum sandbox_state {
	SANDBOX_PENDING,
	SANDBOX_RUNNING,
	SANDBOX_PAUSING,
	SANDBOX_PAUSED,
	SANDBOX_RESUMING,
	SANDBOX_STOPPING,
	SANDBOX_TERMINATED,
	SANDBOX_FAILED,
	SANDBOX_STATES_
};

const char *sandbox_state_name(enum sandbox_state state); /* "Running" */

/* Why a sandbox is in its state: the protocol's words, and some of our own. */
#define SANDBOX_REASON_STARTING "CONTAINER_STARTING"
#define SANDBOX_REASON_PULLING	"IMAGE_PULLING"
#define SANDBOX_REASON_PULL	"IMAGE_PULL_FAILED"
#define SANDBOX_REASON_START	"START_FAILED"
#define SANDBOX_REASON_RUNNING	"CONTAINER_RUNNING"
#define SANDBOX_REASON_PAUSED	"CONTAINER_PAUSED"
#define SANDBOX_REASON_EXITED	"CONTAINER_EXITED"
#define SANDBOX_REASON_ERROR	"CONTAINER_EXITED_ERROR"
#define SANDBOX_REASON_OOM	"CONTAINER_OOM_KILLED"
#define SANDBOX_REASON_LOST	"CONTAINER_LOST"

/* A name and a value, both owned; order is kept. */
struct pair {
	char *name, *value;
};

struct pairs {
	struct pair *v;
	size_t n;
};

void pairs_add(struct pairs *p, struct view name, struct view value);
void pairs_set(struct pairs *p, struct view name, struct view value);
void pairs_remove(struct pairs *p, struct view name);
const char *pairs_get(const struct pairs *p, const char *name); /* or NULL */
void pairs_done(struct pairs *p);

/* A command that runs beside the entrypoint. */
struct sandbox_hook {
	char *name;	/* periodic only */
	char *schedule; /* periodic only */
	struct strv command;
	int64_t timeout_s;
};

/* What the root directory is made of, and what its image says of processes in it. */
struct sandbox_root {
	char *image;	  /* "host", the id of an image, or NULL while it is not known */
	bool host_base;	  /* the host image lies below the layers */
	uint64_t *layers; /* lowest first */
	size_t layers_n;
	struct pairs env;  /* below the request's own */
	char *user, *cwd;  /* or NULL */
	struct strv start; /* what runs if nothing else is asked for: Entrypoint and Cmd */
};

void sandbox_root_done(struct sandbox_root *r);
void sandbox_root_copy(struct sandbox_root *to, const struct sandbox_root *from);

/* Its members in an object of the store's. */
void sandbox_root_format(struct json_writer *w, const struct sandbox_root *r);
void sandbox_root_parse(const struct json *v, struct sandbox_root *ret);

/* What it may reach. */
struct sandbox_network {
	char *policy; /* as JSON; NULL: all that the host lets through */
	char *token;  /* of the policy's API, whether there is a policy or not */
	bool credential_proxy;
	struct pairs settings;	 /* the request's variables for the filter */
	struct strv vault_hosts; /* that its vault binds: its secrets are nowhere */
};

/* What was asked for, checked.  Everything is owned. */
struct sandbox_spec {
	char *image_uri;   /* as asked; NULL if made from something else */
	char *reference;   /* the image's full name, if it is not the host image */
	char *auth;	   /* for the registry, as JSON, or NULL; never stored, wiped when used */
	char *snapshot_id; /* what it was restored from, or NULL */
	struct sandbox_root root;
	struct volumes_list volumes;
	struct sandbox_network network;
	struct strv entrypoint;
	struct pairs env, metadata, limits, requests, extensions;
	bool has_metadata; /* {} was given: it is echoed */
	char *os, *arch;   /* platform, or NULL */
	struct runtime_limits runtime_limits;
	char *secure_token;		/* of secureAccess, or NULL */
	bool resume_on_request;		/* access.resume.on.request */
	int64_t renew_extend_s;		/* access.renew.extend.seconds; 0 = none */
	char *code_pool;		/* interpreters started ahead, or NULL; not stored */
	struct sandbox_hook *pre_start; /* or NULL */
	struct sandbox_hook *periodic;
	size_t periodic_n;
};

void sandbox_spec_done(struct sandbox_spec *s);
void sandbox_spec_forget_auth(struct sandbox_spec *s); /* nobody needs it any more */

/* To and from the store's JSON text. */
osb_must_check int sandbox_spec_format(const struct sandbox_spec *s, char **ret, struct err *e);
osb_must_check int sandbox_spec_parse(struct view text, struct sandbox_spec *ret, struct err *e);

/* What execd reads: entrypoint, environment, token, hooks, interpreters to start ahead, and the
 * certificate of an authority to trust, if there is one. */
osb_must_check int sandbox_start_file(const struct sandbox_spec *s, const char *token,
				      struct view authority, char **ret, struct err *e);

struct sandbox {
	struct list link; /* newest first */
	char id[40];
	enum sandbox_state state;
	const char *reason; /* static */
	char *message;	    /* or NULL */
	int64_t created_us, changed_us;
	int64_t expires_us; /* 0 = never */
	size_t expiry_slot; /* in the expiry heap; SIZE_MAX = none */
	struct runtime_handle handle;
	char token[36];
	struct sandbox_spec spec;
	char *spec_text;	 /* as stored; dropped when metadata changes */
	int64_t renewed_us;	 /* by access */
	bool busy;		 /* an operation is under way */
	bool hidden;		 /* it is being made, and nobody was told of it yet */
	bool counted;		 /* as a user of its image and layers */
	struct pending *pending; /* it waits for its image; or NULL */
	bool captured;		 /* that is, it is frozen for a snapshot, or about to be */
	struct list waiting;	 /* for the end of that: operations */
	bool adopted;		 /* known to the warden that is connected */
	bool ended;		 /* before its create had: how, is below */
	bool ended_oom;
	int ended_status;
	bool unmatched; /* loaded, and the runtime was not told yet to be as recorded */
};

/* Characters for URLs and headers, 192 random bits. */
#define SANDBOX_TOKEN_LEN 32
void sandbox_make_token(char ret[SANDBOX_TOKEN_LEN + 1]);
void sandbox_need_network_token(struct sandbox *b); /* makes it if there is none */

struct sandbox *sandbox_new(void);
void sandbox_free(struct sandbox *b); /* accepts NULL */

/* Reasons are constants: the store's text is mapped back to one. */
const char *sandbox_reason(const char *text);

bool sandbox_is_over(const struct sandbox *b); /* Terminated or Failed */
