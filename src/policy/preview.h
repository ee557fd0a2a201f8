/*
 * policy/preview.h - what a gateway in front of sandboxes decides: where a request goes, whether it
 * may, which headers pass, and what is said when it cannot be answered.
 *
 * Pure, and shared by the server and the stand-alone ingress.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"
#include "policy/route.h"

struct arena;
struct buf;
struct err;

#define PREVIEW_TO_HEADER     "OpenSandbox-Ingress-To"
#define PREVIEW_OLD_HEADER    "OPEN-SANDBOX-INGRESS" /* deprecated name of the same */
#define PREVIEW_SECURE_HEADER "OpenSandbox-Secure-Access"
#define PREVIEW_KEYS_MAX      36

/* ---- the gateway's address ---- */

enum preview_mode { PREVIEW_WILDCARD, PREVIEW_HEADER, PREVIEW_URI, PREVIEW_MODES_ };

const char *preview_mode_name(enum preview_mode mode); /* "wildcard" */
osb_must_check bool preview_mode_parse(struct view text, enum preview_mode *ret);

/* No scheme; a wildcard's is "*.domain[:port]", a header's "host[:port]", a path's anything without
 * '*'.  -EINVAL with a sentence that begins with what is wrong. */
osb_must_check int preview_address_check(enum preview_mode mode, struct view address,
					 struct err *e);

/*
 * How clients name a port of a sandbox: the text of an endpoint, in `a`, or NULL when there is no
 * room.  With `signature` (and `expires`, base 36) it is a signed one.  In header mode the address
 * alone; the header's value is preview_label().
 */
osb_must_check char *preview_endpoint(struct arena *a, enum preview_mode mode, struct view address,
				      const struct route_to *to);
/* "<id>-<port>", or with its signature. */
osb_must_check char *preview_label(struct arena *a, const struct route_to *to);

/* "a" and base64 with or without padding.  -EINVAL: not one of 0-9 and a-z, or no base64, or no
 * byte; -E2BIG: longer than ROUTE_SECRET_MAX. */
osb_must_check int preview_key_parse(struct view id, struct view base64, struct route_key *ret,
				     struct err *e);

/* ---- which sandbox ---- */

struct preview_request {
	struct view host;   /* the Host header; may have a port */
	struct view to;	    /* PREVIEW_TO_HEADER or PREVIEW_OLD_HEADER; p is NULL when absent */
	struct view target; /* path and query, as they came */
};

struct preview {
	struct route_to to;
	struct view target; /* what the sandbox is asked for: path and query; may begin with '?',
			       which stands for "/?" */
	struct view prefix; /* where the client sees the sandbox's "/": "" or "/<id>/<port>..." */
	struct view whole;  /* of a path: what was parsed, for preview_take_signature() */
};

/*
 * By the first label of `to`, else of the host (PREVIEW_WILDCARD, PREVIEW_HEADER), or by the path
 * (PREVIEW_URI).  False: it is no route (400).
 */
osb_must_check bool preview_find(enum preview_mode mode, const struct preview_request *r,
				 struct preview *ret);

/*
 * In a path, what looks like a signature is one only if the sandbox demands secure access, or if
 * the signature is one of our keys'; else it belongs to the sandbox's own path.  To be called when
 * the sandbox is known, before preview_check(); does nothing in the other modes.
 */
void preview_take_signature(struct preview *p, bool secured, const struct route_key *keys,
			    size_t keys_n);

/* Is `host`, without its port, a name below the wildcard address? */
bool preview_is_below(struct view host, struct view address);

/* ---- whether it may ---- */

enum preview_access { PREVIEW_ALLOWED, PREVIEW_DENIED, PREVIEW_NO_KEYS };

/*
 * `token` is the sandbox's, empty if it demands none: then all is allowed.  A header that is there
 * (`secure.p` is not NULL), even empty, decides alone; else the signature does.  *ret_why is a
 * constant sentence when it is not allowed: 401, or 503 for PREVIEW_NO_KEYS.
 */
enum preview_access preview_check(struct view token, struct view secure, const struct route_to *to,
				  const struct route_key *keys, size_t keys_n, uint64_t now_s,
				  const char **ret_why);

/* ---- headers ---- */

/* Of a request, what no sandbox sees: NULL-terminated.  The API key, the gateway's own headers,
 * Host and the forwarding headers, which the gateway writes itself. */
extern const char *const preview_dropped[];
/* The same below a path that all sandboxes share with the API: what a browser sends along there was
 * not meant for this one. */
extern const char *const preview_dropped_shared[];
/* And of a WebSocket there: its Origin is the API's. */
extern const char *const preview_dropped_upgrade[];

/* "127.0.0.1:8000": the Host that programs in sandboxes see. */
#define PREVIEW_HOST_MAX 24
void preview_host(uint16_t port, char ret[PREVIEW_HOST_MAX]);

/*
 * An answer's Location as the client needs it: "/x" gets the prefix in front, and so does
 * "http://127.0.0.1:8000/x" or "http://localhost:8000/x", which names the sandbox by the Host that
 * it saw.  Anything else is left as it is.
 */
struct view preview_location(struct arena *a, struct view location, struct view prefix,
			     uint16_t port);

/*
 * An answer's Set-Cookie as the client may have it: Domain goes, so that no sandbox sets cookies
 * for another's host or the API's; with a prefix, Path moves below it.
 */
struct view preview_cookie(struct arena *a, struct view cookie, struct view prefix);

/*
 * Any of these, by its name; the empty view drops it.  Service-Worker-Allowed does not pass with a
 * prefix: what it allows would answer for the whole origin, other sandboxes and the API included.
 */
struct view preview_answer_header(struct arena *a, struct view name, struct view value,
				  struct view prefix, uint16_t port);

/* ---- what is said ---- */

enum preview_problem {
	PREVIEW_BAD_ROUTE,    /* 400 */
	PREVIEW_UNAUTHORIZED, /* 401 */
	PREVIEW_UNKNOWN,      /* 404: there is no such sandbox */
	PREVIEW_EXPIRED,      /* 404: there was, and its time was over */
	PREVIEW_ENDED,	      /* 502: its program has ended */
	PREVIEW_REFUSED,      /* 502: nothing listens on the port */
	PREVIEW_BROKE,	      /* 502: the program hung up, or spoke no HTTP */
	PREVIEW_NO_VERIFIER,  /* 503: a signed route, and no keys to check it */
	PREVIEW_STARTING,     /* 503 */
	PREVIEW_PAUSED,	      /* 503 */
	PREVIEW_NOT_RESUMED,  /* 503: it was to be resumed, and was not in time */
	PREVIEW_UNREACHABLE,  /* 502: whatever else kept a connection from being made */
	PREVIEW_TIMEOUT,      /* 504: no answer in time */
	PREVIEW_PROBLEMS_
};

int preview_status(enum preview_problem problem);
const char *preview_code(enum preview_problem problem); /* "BACKEND_CONNECTION_FAILED" */
bool preview_may_retry(enum preview_problem problem);	/* then Retry-After: 1 is sent */

/* The sentence, into `ret`: which sandbox, which port, `detail` (may be NULL) if it helps. */
#define PREVIEW_SENTENCE_MAX 512
void preview_sentence(enum preview_problem problem, struct view id, uint16_t port,
		      const char *detail, char ret[PREVIEW_SENTENCE_MAX]);

/* -errno of a connection or an answer as a problem. */
enum preview_problem preview_problem_of(int code);

enum preview_format { PREVIEW_TEXT, PREVIEW_JSON, PREVIEW_HTML };

/* What the Accept header asks for; `otherwise` when it has no opinion. */
enum preview_format preview_format(struct view accept, enum preview_format otherwise);

/* The body; returns its content type.  Text begins with "OpenSandbox Ingress: ".  Never fails: what
 * does not fit is left out. */
const char *preview_page(struct buf *out, enum preview_problem problem, enum preview_format format,
			 const char *sentence);
