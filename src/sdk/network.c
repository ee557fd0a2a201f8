/*
 * sdk/network.c - network policies, the credential vault, diagnostics.
 */
#include <opensandbox/network.h>
#include <string.h>

#include "base/err.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "sdk/asking.h"
#include "sdk/fail.h"
#include "sdk/sandbox_int.h"

#define BODY_MAX (4u << 20)

/* A request to egress, with a body of JSON if `body` is not NULL. */
static int ask_egress(osb_sandbox *s, const char *method, const char *path, struct view body,
		      const osb_call *call, char **ret, osb_error *e)
{
	struct ask_part part = {.bytes = body, .fd = -1};
	struct asking q;
	int r = asking_exec(s, OSB_PORT_EGRESS, method, path, call, &q, e);

	if (r == 0 && body.p) {
		q.ask.content_type = "application/json";
		q.ask.parts = &part;
		q.ask.parts_n = 1;
	}
	if (r == 0)
		r = asking_text(s->client, &q, call, ret, e);
	asking_done(&q);
	return r;
}

/* Mistakes of the caller's are told without asking anybody. */
static int check_json(const char *text, osb_error *e)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	struct err why = ERR_NONE;

	if (!text || json_parse(view_of(text), 0, &v, &why) < 0)
		return fail(e, OSB_ERR_INVALID, "the document is no JSON: %s",
			    text ? why.msg : "there is none");
	return 0;
}

/* ---- policies ---- */

int osb_policy_get(osb_sandbox *s, const osb_call *call, char **ret_json, osb_error *e)
{
	return ask_egress(s, "GET", "/policy", VIEW_NONE, call, ret_json, e);
}

int osb_policy_set(osb_sandbox *s, const char *policy_json, const osb_call *call, char **ret_json,
		   osb_error *e)
{
	if (check_json(policy_json, e) < 0)
		return (int)OSB_ERR_INVALID;
	return ask_egress(s, "PUT", "/policy", view_of(policy_json), call, ret_json, e);
}

int osb_policy_add(osb_sandbox *s, const osb_rule *rules, size_t n, const osb_call *call,
		   char **ret_json, osb_error *e)
{
	osb_cleanup(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	struct json_writer w;

	json_writer_init(&w, &body);
	json_write_array(&w);
	for (size_t i = 0; i < n; i++) {
		json_write_object(&w);
		json_put_cstr(&w, "action", rules[i].allow ? "allow" : "deny");
		json_put_cstr(&w, "target", rules[i].target);
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	if (json_writer_end(&w) < 0)
		return fail(e, OSB_ERR_INVALID, "these are too many rules");
	return ask_egress(s, "PATCH", "/policy", buf_view(&body), call, ret_json, e);
}

int osb_policy_remove(osb_sandbox *s, const char *const *targets, const osb_call *call,
		      char **ret_json, osb_error *e)
{
	osb_cleanup(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	struct json_writer w;

	json_writer_init(&w, &body);
	json_write_array(&w);
	for (; *targets; targets++)
		json_write_cstr(&w, *targets);
	json_write_array_end(&w);
	if (json_writer_end(&w) < 0)
		return fail(e, OSB_ERR_INVALID, "these are too many targets");
	return ask_egress(s, "DELETE", "/policy", buf_view(&body), call, ret_json, e);
}

int osb_policy_suggest(osb_sandbox *s, const osb_call *call, char **ret_json, osb_error *e)
{
	return ask_egress(s, "GET", "/policy/suggestion", VIEW_NONE, call, ret_json, e);
}

/* ---- the vault ---- */

int osb_vault_create(osb_sandbox *s, const char *vault_json, const osb_call *call, char **ret_json,
		     osb_error *e)
{
	if (check_json(vault_json, e) < 0)
		return (int)OSB_ERR_INVALID;
	return ask_egress(s, "POST", "/credential-vault", view_of(vault_json), call, ret_json, e);
}

int osb_vault_patch(osb_sandbox *s, const char *patch_json, const osb_call *call, char **ret_json,
		    osb_error *e)
{
	if (check_json(patch_json, e) < 0)
		return (int)OSB_ERR_INVALID;
	return ask_egress(s, "PATCH", "/credential-vault", view_of(patch_json), call, ret_json, e);
}

int osb_vault_delete(osb_sandbox *s, const osb_call *call, osb_error *e)
{
	return ask_egress(s, "DELETE", "/credential-vault", VIEW_NONE, call, NULL, e);
}

int osb_vault_get(osb_sandbox *s, const char *part, const char *name, const osb_call *call,
		  char **ret_json, osb_error *e)
{
	struct asking q;
	int r = asking_exec(s, OSB_PORT_EGRESS, "GET", "/credential-vault", call, &q, e);

	if (part)
		asking_segment(&q, part, "");
	if (part && name)
		asking_segment(&q, name, "");
	if (r == 0)
		r = asking_text(s->client, &q, call, ret_json, e);
	asking_done(&q);
	return r;
}

/* ---- diagnostics ---- */

int osb_diagnostics(osb_sandbox *s, const char *what, const char *scope, const osb_call *call,
		    char **ret_json, osb_error *e)
{
	struct asking q;
	int r;

	sandbox_asking(s, "GET", "/diagnostics", &q);
	asking_segment(&q, what, "");
	asking_param(&q, "scope", scope ? scope : "all");
	r = asking_text(s->client, &q, call, ret_json, e);
	asking_done(&q);
	return r;
}

int osb_diagnostics_text(osb_sandbox *s, const char *what, const osb_call *call, char **ret_text,
			 osb_error *e)
{
	struct asking q;
	int r;

	sandbox_asking(s, "GET", "/diagnostics/", &q);
	if (!what || buf_append_str(&q.target, what) < 0)
		q.ask.method = "";
	r = asking_text(s->client, &q, call, ret_text, e);
	asking_done(&q);
	return r;
}
