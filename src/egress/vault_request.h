/*
 * egress/vault_request.h - what becomes of a sandbox's request: refused, passed, or given secrets.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"
#include "codec/http1.h"
#include "policy/vault.h"

struct http_exchange;
struct vault_conn;

#define VAULT_REQUEST_BODY_MAX (1u << 20) /* of those that are looked into */

/* What is sent to the server; everything is in the exchange's arena. */
struct vault_request_out {
	const struct vault_binding *binding; /* or NULL */
	struct view target;
	struct http1_header *headers;
	size_t headers_n;
	int64_t length; /* -1 = chunked, 0 = no body */
	enum vault_body body_kind;
	bool collected; /* `body` is all of it */
	struct view body;
};

#define VAULT_REQUEST_ASTRAY 421 /* the connection leads to somebody else, as far as is known */

/* 0, or the status to refuse it with, and a sentence.  `ret_name` is the host, "" if it has none.
 */
osb_must_check int vault_request_make(struct vault_conn *c, struct http_exchange *x,
				      char ret_name[256], struct vault_request_out *ret,
				      const char **ret_why);

/* The collected body, with its placeholders replaced.  -E2BIG. */
osb_must_check int vault_request_body(struct http_exchange *x, struct view body,
				      struct vault_request_out *out);

/* Is a header for the next hop alone: by its nature, or because Connection says so? */
bool vault_request_stays(const struct http1_head *h, struct view name);
