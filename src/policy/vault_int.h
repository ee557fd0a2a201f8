/*
 * policy/vault_int.h - how a vault is kept; for policy/vault*.c alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/strv.h"
#include "policy/vault.h"

#define VAULT_NAME_MAX	      253
#define VAULT_CREDENTIALS_MAX 512
#define VAULT_BINDINGS_MAX    512
#define VAULT_LIST_MAX	      64 /* hosts, paths, ... of one binding */
/* All hosts of all bindings, and all paths: pairs are compared. */
#define VAULT_PATTERNS_MAX 2048
/* Of all bindings: each header of an answer is searched for all of them. */
#define VAULT_SUBSTITUTIONS_MAX 1024
#define VAULT_PLACEHOLDER_MAX	256
#define VAULT_SECRET_MAX	(64u * 1024)

struct vault_credential {
	char *name;
	char *value;
	int64_t revision;
};

enum vault_auth {
	VAULT_BEARER,
	VAULT_BASIC,
	VAULT_API_KEY,
	VAULT_CUSTOM_HEADERS,
	VAULT_PASSTHROUGH,
	VAULT_AUTHS_
};

enum vault_place { VAULT_IN_PATH = 1, VAULT_IN_QUERY = 2, VAULT_IN_HEADER = 4, VAULT_IN_BODY = 8 };

struct vault_injection {
	char *name; /* canonical */
	char *credential;
	char *value; /* rendered; NULL until the vault is whole */
};

/* One text that is looked for, and what takes its place. */
struct vault_needle {
	char *text, *value;
	size_t text_len, value_len;
};

enum vault_coding { VAULT_RAW, VAULT_URL, VAULT_FORM, VAULT_JSON, VAULT_CODINGS_ };

struct vault_substitution {
	char *credential;
	char *placeholder;
	unsigned in;				     /* enum vault_place */
	struct vault_needle needles[VAULT_CODINGS_]; /* the placeholder and the value, so coded */
};

struct vault_binding {
	char *name;
	bool http, https;
	unsigned ports; /* as given, shown again: 1 = 80, 2 = 443 */
	struct strv hosts, methods, paths;
	enum vault_auth auth;
	struct vault_injection *injections;
	size_t injections_n;
	struct vault_substitution *substitutions;
	size_t substitutions_n;
};

struct vault {
	int64_t revision;
	struct vault_credential *credentials; /* sorted by name */
	size_t credentials_n;
	struct vault_binding *bindings; /* sorted by name */
	size_t bindings_n;
	struct vault_needle *redactions; /* the longest first */
	size_t redactions_n;
	bool redacted[256]; /* by the bytes that they begin with */
};

extern const char *const vault_auth_name[VAULT_AUTHS_];

/* vault_binding.c */
osb_must_check int vault_only_fields(const struct json *v, const char *what,
				     const char *const *names, struct err *e);
osb_must_check int vault_read_name(const struct json *v, const char *what, char **ret,
				   struct err *e);
osb_must_check int vault_read_binding(const struct json *v, enum vault_flags flags,
				      struct vault_binding *ret, struct err *e);
void vault_binding_done(struct vault_binding *b);
void vault_write_match(const struct vault_binding *b, struct json_writer *w);
void vault_binding_copy(const struct vault_binding *b, struct vault_binding *ret);

struct view vault_trim(struct view v); /* all white space */
int vault_lower(int c);		       /* of ASCII letters alone */
int vault_upper(int c);

/* vault_auth.c */
osb_must_check int vault_read_auth(const struct json *v, struct vault_binding *b, struct err *e);
void vault_write_auth_document(const struct vault_binding *b, struct json_writer *w);
bool vault_header_reserved(struct view name);

/* vault_match.c */
osb_must_check int vault_check_ambiguity(const struct vault *v, struct err *e);
bool vault_path_slippery(struct view path);

/* vault_rewrite.c: renders what is injected and replaced; the vault's credentials are there. */
osb_must_check int vault_render(struct vault *v, struct err *e);

const struct vault_credential *vault_find_credential(const struct vault *v, const char *name);
void vault_wipe(char *secret); /* and frees; accepts NULL */
