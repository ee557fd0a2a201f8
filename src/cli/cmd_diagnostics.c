/*
 * cli/cmd_diagnostics.c - osb diagnostics ..., and the older osb devops ...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/num.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/show.h"
#include "cli/snake.h"
#include "codec/json.h"
#include "codec/json_copy.h"
#include "codec/json_writer.h"
#include "codec/url.h"

/* Members that the answer may lack are null. */
static int show_content(struct cli *c, const struct json *v)
{
	static const struct {
		const char *name, *shown;
	} members[] = {
		{"sandboxId", "sandbox_id"},
		{"kind", "kind"},
		{"scope", "scope"},
		{"delivery", "delivery"},
		{"contentType", "content_type"},
		{"truncated", "truncated"},
		{"content", "content"},
		{"contentUrl", "content_url"},
		{"contentLength", "content_length"},
		{"expiresAt", "expires_at"},
		{"warnings", "warnings"},
	};
	osb_cleanup(buf_done) struct buf json = BUF_INIT(CLI_JSON_MAX);
	struct json_writer w;

	json_writer_init(&w, &json);
	json_write_object(&w);
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		json_write_key(&w, members[i].shown);
		json_write_json(&w, json_get(v, members[i].name));
	}
	json_write_object_end(&w);
	return json_writer_end(&w) < 0 ? CLI_FAILED : show_json(c, buf_view(&json), NULL);
}

static int diagnostics(struct cli *c, const char *what)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	osb_cleanup(mem_freep) char *text = NULL;
	osb_sandbox *s = cli_sandbox(c);
	struct err e = ERR_NONE;
	struct view content;
	int code;

	if (!s)
		return CLI_FAILED;
	code = cli_done(c, osb_diagnostics(s, what, cli_flag(c, "scope"), &c->call, &text, &c->e));
	osb_sandbox_free(s);
	if (code)
		return code;
	if (json_parse(view_of(text), 0, &v, &e) < 0)
		return cli_error(c, "the server's answer is no JSON: %s", e.msg);
	if (c->format != FORMAT_RAW)
		return show_content(c, v);
	if (!json_str(json_get(v, "content"), &content) &&
	    !json_str(json_get(v, "contentUrl"), &content))
		return 0;
	return show_raw(c, content);
}

int diagnostics_logs(struct cli *c)
{
	return diagnostics(c, "logs");
}

int diagnostics_events(struct cli *c)
{
	return diagnostics(c, "events");
}

/* ---- the older forms ---- */

static int devops(struct cli *c, const char *what, const char *const *flags)
{
	osb_cleanup(buf_done) struct buf target = BUF_INIT(4096);
	osb_cleanup(mem_freep) char *text = NULL;
	const char *mark = "?";
	osb_sandbox *s;
	int r = buf_append_str(&target, what), code;

	for (; *flags && r == 0; flags += 2) {
		const char *value = cli_flag(c, flags[0]);

		if (!value)
			continue;
		r = buf_printf(&target, "%s%s=", mark, flags[1]);
		r = r ? r : url_encode(&target, view_of(value), false);
		mark = "&";
	}
	if (r < 0)
		return cli_usage(c, "the options are too long");
	fprintf(stderr, "osb: 'devops %s' is deprecated: see 'osb diagnostics --help'\n", what);
	s = cli_sandbox(c);
	if (!s)
		return CLI_FAILED;
	code = cli_done(c, osb_diagnostics_text(s, buf_str(&target), &c->call, &text, &c->e));
	osb_sandbox_free(s);
	return code ? code : show_raw(c, view_of(text));
}

int devops_logs(struct cli *c)
{
	return devops(c, "logs", (const char *[]){"tail", "tail", "since", "since", NULL});
}

int devops_inspect(struct cli *c)
{
	return devops(c, "inspect", (const char *[]){NULL});
}

int devops_events(struct cli *c)
{
	return devops(c, "events", (const char *[]){"limit", "limit", NULL});
}

int devops_summary(struct cli *c)
{
	return devops(c, "summary",
		      (const char *[]){"tail", "tail", "event-limit", "event_limit", NULL});
}
