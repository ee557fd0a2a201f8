/*
 * image/registry_int.h - the registry client's own parts: endpoints, credentials, calls.
 *
 * An endpoint is a place that serves the repository: a mirror or the registry itself.  A call is
 * one thing asked of an endpoint, however many requests that takes: challenges, redirects, tries.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "codec/docker_config.h"
#include "image/registry.h"
#include "image/registry_transfer.h"
#include "image/registry_url.h"

#define REGISTRY_MIRRORS_MAX   8
#define REGISTRY_REDIRECTS_MAX 5

struct endpoint {
	char host[IMAGE_REF_NAME_MAX + 1]; /* "registry-1.docker.io", "127.0.0.1:5000" */
	bool tls;
	struct registry_origin origin; /* the same as curl sees it */
	bool mirror;
	bool probed;		 /* whether it speaks TLS is known */
	struct docker_auth auth; /* what it may be told; in the registry's arena */
	char *authorization;	 /* value of the header, once it was asked for; or NULL */
	unsigned auth_serial;	 /* changes with it */
};

struct registry {
	const struct registry_options *o;
	struct arena arena;
	struct transfers *transfers;
	struct endpoint endpoints[REGISTRY_MIRRORS_MAX + 1]; /* the registry itself comes last */
	size_t endpoints_n;
	size_t first; /* the endpoint that is asked first */
};

enum call_flags {
	CALL_TOKEN = 1, /* to a token server: nothing of the endpoint's, no redirects */
	CALL_ONCE = 2,	/* no second try: the caller begins somewhere else */
};

struct call;

/* Before each request: what it sends or keeps begins again. */
typedef int call_before_fn(void *arg, struct call *c, struct err *e);

struct call {
	struct registry *r;
	const char *method;
	char *path;	     /* below the endpoint, owned; or a whole URL with CALL_TOKEN */
	struct strv headers; /* besides the authorization */
	enum call_flags flags;
	call_before_fn *before;
	transfer_sink_fn *sink;
	transfer_source_fn *source;
	uint64_t source_bytes;
	void *arg; /* of all three */
	uint64_t range_from;
	unsigned total_s;

	size_t endpoint; /* which one is asked */
	size_t tried;	 /* how many were before */
	char *url;	 /* where it leads now, owned */
	bool foreign;	 /* away from the endpoint: nothing that is secret goes there */
	unsigned redirects, challenges, failures;
	unsigned auth_serial; /* of the endpoint, when the request was sent */
	uint64_t not_before_us;
	struct transfer *t;
};

void call_init(struct call *c, struct registry *r, const char *method, char *path_taken);
void call_done(struct call *c);

enum call_verdict {
	CALL_DONE,  /* a 2xx answer: c->t has its head */
	CALL_AGAIN, /* call_start(), not before c->not_before_us */
};

osb_must_check int call_start(struct call *c, struct err *e);

/* What the finished transfer means: a verdict, or -errno. */
osb_must_check int call_judge(struct call *c, struct err *e);

/* Start, wait, judge, until it is done. */
osb_must_check int call_run(struct call *c, struct err *e);

/* Something was gained: failures so far do not count any more. */
void call_gained(struct call *c);

/* The next request begins where the first did, not where we were sent to. */
void call_restart(struct call *c);

/* After a failure: the same of another endpoint?  False when there is none. */
bool call_elsewhere(struct call *c);

/* The answer 4xx or 5xx as an error, in the registry's own words. */
int registry_answer_error(const struct transfer *t, const char *host, struct err *e);

char *registry_endpoint_url(const struct endpoint *ep, const char *path); /* on the heap */

/* Finds out whether an endpoint that may go without TLS does. */
void registry_probe(struct registry *r, struct endpoint *ep);

/* May requests go there without TLS? */
bool registry_plain_allowed(const struct registry *r, const char *host);
bool registry_is_insecure(const struct registry *r, const char *host);

/* Answers a challenge: the endpoint's authorization is new, or an error says why not. */
osb_must_check int registry_authorize(struct registry *r, struct endpoint *ep,
				      const struct transfer *challenged, struct err *e);

/*
 * May a server at `from` send us to `url`?  No way back from TLS, no plain HTTP but where it is
 * allowed, and not to this machine from elsewhere.
 */
osb_must_check int registry_check_way(const struct registry *r, const struct registry_origin *from,
				      const char *url, struct registry_origin *ret, struct err *e);

/* A small document: its whole body, in memory. */
struct registry_document {
	struct buf body; /* with its ceiling */
	char content_type[256];
	char digest[IMAGE_REF_DIGEST_LEN + 1]; /* of the body */
};

/* `wanted`: the digest that it must have, or NULL: then what the registry says must be true. */
osb_must_check int registry_get(struct registry *r, const char *path, const char *accept,
				const char *wanted, struct registry_document *ret, struct err *e);
