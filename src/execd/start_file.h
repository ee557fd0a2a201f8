/*
 * execd/start_file.h - what a sandbox is to be, told when it is wanted.
 *
 * A daemon that was started ahead waits on a SOCK_SEQPACKET socket for one datagram with one
 * descriptor: a memory file of JSON,
 * {"entrypoint":[...],"env":{...},"cwd":"/","user":"...","token":"...","lifecycle":{...},
 * "codePool":"python:2","authority":"-----BEGIN CERTIFICATE..."}.
 */
#pragma once

#include "base/macro.h"
#include "base/strv.h"
#include "base/view.h"

struct err;
struct json;
struct loop;
struct start_file_wait;

#define START_FILE_MAX_BYTES (8 * 1024 * 1024)

struct start_file {
	struct json *root;
	struct strv entrypoint;	      /* may be empty: nothing but the daemon */
	struct strv env;	      /* "NAME=value" */
	char *cwd;		      /* or NULL: as it is; made if it is missing */
	char *user;		      /* of all that is started, as images name it; or NULL: ours */
	char *token;		      /* or NULL: everybody may call */
	char *authority;	      /* a certificate that programs are to trust, PEM; or NULL */
	char *code_pool;	      /* or NULL: no interpreters are started ahead */
	const struct json *lifecycle; /* part of root, or NULL */
};

/* On success *ret is the caller's to end.  -EINVAL with a sentence. */
osb_must_check int start_file_parse(struct view text, struct start_file *ret, struct err *e);
void start_file_done(struct start_file *f);

/* With the file, which the callee ends; or NULL and e->code 0: the peer has gone without one; or
 * NULL and why it was no good.  Called once; the wait may be freed in it. */
typedef void start_file_fn(void *arg, struct start_file *f, struct err *e);

/* Takes `fd` on success. */
osb_must_check int start_file_wait_new(struct loop *l, int fd, start_file_fn *fn, void *arg,
				       struct start_file_wait **ret, struct err *e);
void start_file_wait_free(struct start_file_wait *w); /* accepts NULL */
