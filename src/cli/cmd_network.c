/*
 * cli/cmd_network.c - osb egress ..., osb credential-vault ...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/view.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/show.h"
#include "cli/snake.h"
#include "codec/json.h"
#include "codec/json_copy.h"
#include "codec/json_writer.h"

/* ---- policies ---- */

/* The policy in {"status","mode","policy":{...}}. */
static int show_policy(struct cli *c, char *text)
{
	osb_cleanup(buf_done) struct buf json = BUF_INIT(CLI_JSON_MAX);
	osb_cleanup(json_freep) struct json *v = NULL;
	const struct json *policy, *mode;
	struct err e = ERR_NONE;
	struct json_writer w;
	int r = json_parse(view_of(text), 0, &v, &e);

	osb_free(text);
	if (r < 0)
		return cli_error(c, "the server's answer is no JSON: %s", e.msg);
	policy = json_get(v, "policy") ? json_get(v, "policy") : v;
	mode = json_get(policy, "mode");
	json_writer_init(&w, &json);
	json_write_object(&w);
	json_write_key(&w, "default_action");
	json_write_json(&w, json_get(policy, "defaultAction"));
	json_write_key(&w, "egress");
	json_write_json(&w, json_get(policy, "egress"));
	if (mode) {
		json_write_key(&w, "mode");
		json_write_json(&w, mode);
	}
	json_write_object_end(&w);
	return json_writer_end(&w) < 0 ? CLI_FAILED : show_json(c, buf_view(&json), NULL);
}

int egress_get(struct cli *c)
{
	char *text = NULL;
	int code = cli_done(c, osb_policy_get(c->box, &c->call, &text, &c->e));
	return code ? code : show_policy(c, text);
}

/* ACTION=TARGET, as often as it was given; -1 after a message. */
static ssize_t read_rules(struct cli *c, osb_rule *ret)
{
	ssize_t n = 0;
	const char *text;

	for (; (text = cli_flag_nth(c, "rule", (size_t)n)); n++) {
		struct view v = view_of(text), action = view_first(v, view_find(v, '='));

		ret[n].allow = view_is(action, "allow");
		ret[n].target = text + MIN(action.len + 1, v.len);
		if ((!ret[n].allow && !view_is(action, "deny")) || !ret[n].target[0]) {
			cli_usage(c, "--rule: '%s' is not written allow=TARGET or deny=TARGET",
				  text);
			return -1;
		}
	}
	return n;
}

static int show_patched(struct cli *c, const osb_rule *rules, size_t n)
{
	osb_cleanup(buf_done) struct buf json = BUF_INIT(CLI_JSON_MAX);
	struct json_writer w;

	json_writer_init(&w, &json);
	json_write_object(&w);
	json_put_cstr(&w, "sandbox_id", c->args[0]);
	json_write_key(&w, "patched_rules");
	json_write_array(&w);
	for (size_t i = 0; i < n; i++) {
		json_write_object(&w);
		json_put_cstr(&w, "action", rules[i].allow ? "allow" : "deny");
		json_put_cstr(&w, "target", rules[i].target);
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	json_write_object_end(&w);
	return json_writer_end(&w) < 0 ? CLI_FAILED : show_json(c, buf_view(&json), NULL);
}

int egress_patch(struct cli *c)
{
	osb_cleanup(mem_freep) osb_rule *rules = mem_new_array(osb_rule, c->given_n + 1);
	ssize_t n = read_rules(c, rules);
	int code;

	if (n < 0)
		return CLI_USAGE;
	code = cli_done(c, osb_policy_add(c->box, rules, (size_t)n, &c->call, NULL, &c->e));
	return code ? code : show_patched(c, rules, (size_t)n);
}

/* Turns learning on, or shows what was learnt so far. */
int egress_learn(struct cli *c)
{
	char *text = NULL;
	int code;

	if (cli_has(c, "start")) {
		code = cli_done(c, osb_policy_set(c->box,
						  "{\"mode\":\"learn\",\"defaultAction\":\"deny\","
						  "\"egress\":[]}",
						  &c->call, NULL, &c->e));
		return code ? code
			    : show_done(c,
					"Learning: everything passes and is recorded. "
					"'osb egress learn %s' shows what it needed.",
					c->args[0]);
	}
	code = cli_done(c, osb_policy_suggest(c->box, &c->call, &text, &c->e));
	return code ? code : show_policy(c, text);
}

/* ---- the vault ---- */

static int change_vault(struct cli *c, int (*change)(osb_sandbox *, const char *, const osb_call *,
						     char **, osb_error *))
{
	osb_cleanup(mem_freep) char *payload = NULL;
	char *text = NULL;
	size_t n = 0;
	int code;

	payload = cli_read_file(c, cli_flag(c, "file"), &n);
	if (!payload)
		return CLI_FAILED;
	code = cli_done(c, change(c->box, payload, &c->call, &text, &c->e));
	explicit_bzero(payload, n); /* secrets */
	return code ? code : snake_show(c, text, NULL);
}

int vault_create(struct cli *c)
{
	return change_vault(c, osb_vault_create);
}

int vault_patch(struct cli *c)
{
	return change_vault(c, osb_vault_patch);
}

/* A list stands in {"revision", part: [...]}: its items alone. */
static int show_part(struct cli *c, char *text, const char *part, const char *columns)
{
	osb_cleanup(buf_done) struct buf json = BUF_INIT(CLI_JSON_MAX);
	osb_cleanup(json_freep) struct json *v = NULL;
	struct err e = ERR_NONE;
	struct json_writer w;
	int r = json_parse(view_of(text), 0, &v, &e);

	osb_free(text);
	if (r < 0)
		return cli_error(c, "the server's answer is no JSON: %s", e.msg);
	json_writer_init(&w, &json);
	snake_write(&w, json_get(v, part));
	return json_writer_end(&w) < 0 ? CLI_FAILED : show_json(c, buf_view(&json), columns);
}

static int get_vault(struct cli *c, const char *part, const char *name, const char *columns)
{
	char *text = NULL;
	int code = cli_done(c, osb_vault_get(c->box, part, name, &c->call, &text, &c->e));
	if (code)
		return code;
	return columns ? show_part(c, text, part, columns) : snake_show(c, text, NULL);
}

int vault_get(struct cli *c)
{
	return get_vault(c, NULL, NULL, NULL);
}

int vault_credential_list(struct cli *c)
{
	return get_vault(c, "credentials", NULL, "name source_type revision");
}

int vault_credential_get(struct cli *c)
{
	return get_vault(c, "credentials", c->args[1], NULL);
}

int vault_binding_list(struct cli *c)
{
	return get_vault(c, "bindings", NULL, "name revision match auth");
}

int vault_binding_get(struct cli *c)
{
	return get_vault(c, "bindings", c->args[1], NULL);
}

int vault_delete(struct cli *c)
{
	osb_cleanup(buf_done) struct buf json = BUF_INIT(CLI_JSON_MAX);
	struct json_writer w;
	int code = cli_done(c, osb_vault_delete(c->box, &c->call, &c->e));
	if (code)
		return code;
	json_writer_init(&w, &json);
	json_write_object(&w);
	json_put_cstr(&w, "sandbox_id", c->args[0]);
	json_put_cstr(&w, "status", "deleted");
	json_write_object_end(&w);
	return json_writer_end(&w) < 0 ? CLI_FAILED : show_json(c, buf_view(&json), NULL);
}
