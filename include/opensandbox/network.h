/*
 * opensandbox/network.h - what a sandbox may reach, and secrets that it uses without seeing them.
 *
 * Documents are the protocol's JSON; answers are freed with osb_free().
 */
#pragma once

#include <opensandbox/sandbox.h>

OSB_BEGIN

/* {"status","mode","policy":{...}}. */
OSB_API int osb_policy_get(osb_sandbox *s, const osb_call *call, char **ret_json, osb_error *e);
OSB_API int osb_policy_set(osb_sandbox *s, const char *policy_json, const osb_call *call,
			   char **ret_json, osb_error *e);

typedef struct osb_rule {
	bool allow;
	const char *target; /* "example.com", "*.example.com", "203.0.113.0/24" */
} osb_rule;

/* These go before the others; one with the same target is replaced. */
OSB_API int osb_policy_add(osb_sandbox *s, const osb_rule *rules, size_t n, const osb_call *call,
			   char **ret_json, osb_error *e);
/* `targets` is NULL-terminated. */
OSB_API int osb_policy_remove(osb_sandbox *s, const char *const *targets, const osb_call *call,
			      char **ret_json, osb_error *e);
/* What a sandbox in learn mode has needed, as a policy. */
OSB_API int osb_policy_suggest(osb_sandbox *s, const osb_call *call, char **ret_json, osb_error *e);

/* ---- the credential vault ---- */

OSB_API int osb_vault_create(osb_sandbox *s, const char *vault_json, const osb_call *call,
			     char **ret_json, osb_error *e);
OSB_API int osb_vault_patch(osb_sandbox *s, const char *patch_json, const osb_call *call,
			    char **ret_json, osb_error *e);
OSB_API int osb_vault_delete(osb_sandbox *s, const osb_call *call, osb_error *e);

/* What there is, never a secret.  `part` is NULL for all of it, "credentials" or "bindings";
 * `name` NULL for a list. */
OSB_API int osb_vault_get(osb_sandbox *s, const char *part, const char *name, const osb_call *call,
			  char **ret_json, osb_error *e);

/* ---- diagnostics ---- */

/* `what` is "logs" or "events"; `scope` "container", "lifecycle", "network", "all", ... */
OSB_API int osb_diagnostics(osb_sandbox *s, const char *what, const char *scope,
			    const osb_call *call, char **ret_json, osb_error *e);

/* The older text forms: "logs?tail=100", "events", "inspect", "summary". */
OSB_API int osb_diagnostics_text(osb_sandbox *s, const char *what, const osb_call *call,
				 char **ret_text, osb_error *e);

OSB_END
