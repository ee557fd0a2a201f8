/*
 * policy/vault.h - credentials, and the requests that they are added to.
 *
 * A vault never changes: a patch makes the next one from it.  What it knows of secrets is wiped
 * when it is freed, and only vault_write_document() and the rewriting of requests let them out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct buf;
struct err;
struct json;
struct json_writer;
struct net_policy;
struct strv;
struct vault;
struct vault_binding;

#define VAULT_DOCUMENT_MAX (1u << 20) /* of one request to the API */
#define VAULT_REDACTED	   "[REDACTED]"

enum vault_flags {
	VAULT_SCOPED = 1 /* bindings must name methods and paths, and not all of them */
};

/* From a create request.  -EINVAL with a sentence. */
osb_must_check int vault_new(const struct json *doc, const struct net_policy *policy,
			     enum vault_flags flags, struct vault **ret, struct err *e);

/* What `old` becomes by a patch request.  -ESTALE if it expects another revision, else -EINVAL. */
osb_must_check int vault_patch(const struct vault *old, const struct json *doc,
			       const struct net_policy *policy, enum vault_flags flags,
			       struct vault **ret, struct err *e);
void vault_free(struct vault *v); /* accepts NULL */
DEFINE_CLEANUP(struct vault *, vault_free)

/* Is every bound host still allowed, and by a rule that names it?  -EINVAL with a sentence. */
osb_must_check int vault_accepts(const struct vault *v, const struct net_policy *policy,
				 struct err *e);

/* ---- what is shown: never a secret ---- */

int64_t vault_revision(const struct vault *v);
void vault_write_state(const struct vault *v, struct json_writer *w);
void vault_write_credentials(const struct vault *v, struct json_writer *w);
void vault_write_bindings(const struct vault *v, struct json_writer *w);
/* False: there is none of that name. */
bool vault_write_credential(const struct vault *v, struct view name, struct json_writer *w);
bool vault_write_binding(const struct vault *v, struct view name, struct json_writer *w);

/* ---- what is kept: with secrets, for vault_restore() ---- */

void vault_write_document(const struct vault *v, struct json_writer *w);
osb_must_check int vault_restore(const struct json *doc, struct vault **ret, struct err *e);

/* ---- what may be kept anywhere: the names of bound hosts, as the bindings write them ---- */

void vault_hosts_write(const struct vault *v, struct json_writer *w); /* an array */
osb_must_check int vault_hosts_read(const struct json *v, struct strv *ret, struct err *e);
bool vault_hosts_have(const struct strv *hosts, struct view host);

/* ---- requests ---- */

struct vault_request {
	bool https;
	struct view method;
	struct view host; /* without a port */
	struct view path; /* raw, without the query */
};

enum vault_verdict { VAULT_UNBOUND, VAULT_BOUND, VAULT_AMBIGUOUS };

/* Does any binding speak of this host, in whatever scheme? */
bool vault_binds(const struct vault *v, struct view host);
bool vault_binds_over(const struct vault *v, struct view host, bool https); /* in this one */
size_t vault_bindings(const struct vault *v);

/* An exact host goes before a wildcard; two bindings of the same rank are ambiguous. */
enum vault_verdict vault_match(const struct vault *v, const struct vault_request *q,
			       const struct vault_binding **ret);
const char *vault_binding_name(const struct vault_binding *b);

/*
 * A request target with its placeholders replaced.  -EACCES: the new path is no longer the
 * binding's, or another one's too.  -E2BIG.
 */
osb_must_check int vault_rewrite_target(const struct vault *v, const struct vault_binding *b,
					const struct vault_request *q, struct view target,
					struct buf *out, struct err *e);

/* A header of the client's, value replaced.  1: `out` has the new one; 0: it stays as it is, or is
 * none that is looked into; -EINVAL: it could not be sent. */
osb_must_check int vault_rewrite_header(const struct vault_binding *b, struct view name,
					struct view value, struct buf *out);

/* Bodies are looked into only if a substitution says so, and only if this knows how. */
enum vault_body { VAULT_BODY_NONE, VAULT_BODY_TEXT, VAULT_BODY_JSON, VAULT_BODY_FORM };
enum vault_body vault_body_kind(const struct vault_binding *b, struct view content_type,
				struct view content_encoding);
osb_must_check int vault_rewrite_body(const struct vault_binding *b, enum vault_body kind,
				      struct view body, struct buf *out);

/* The headers that the binding adds, in the place of those of the same names. */
size_t vault_headers(const struct vault_binding *b);
struct view vault_header_name(const struct vault_binding *b, size_t i);
struct view vault_header_value(const struct vault_binding *b, size_t i);

/* 1: `value` held a secret, and `out` has it without; 0: it did not. */
osb_must_check int vault_redact(const struct vault *v, struct view value, struct buf *out);
