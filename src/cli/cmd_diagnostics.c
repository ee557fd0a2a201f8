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

#define TAIL_BYTES 256 /* by so many the end of what was printed is known again */
#define FOLLOW_MS  500

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
	struct err e = ERR_NONE;
	struct view content;
	int code = cli_done(
		c, osb_diagnostics(c->box, what, cli_flag(c, "scope"), &c->call, &text, &c->e));
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

/* ---- what the sandbox's own program prints ---- */

/* The content of an answer; NULL after a message. */
static char *get_logs(struct cli *c, osb_sandbox *s)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	osb_cleanup(mem_freep) char *text = NULL;
	struct err e = ERR_NONE;
	struct view content = VIEW_NONE;

	if (osb_diagnostics(s, "logs", "container", &c->call, &text, &c->e) < 0) {
		cli_fail(c);
		return NULL;
	}
	if (json_parse(view_of(text), 0, &v, &e) < 0)
		return mem_strdup("");
	(void)json_str(json_get(v, "content"), &content);
	return mem_strndup(content.p ? content.p : "", content.len);
}

/* What has come since: behind the end of what was there, wherever that stands now. */
static const char *news(const char *before, const char *now)
{
	size_t n = strlen(before), known = MIN(n, (size_t)TAIL_BYTES);
	const char *end = before + n - known, *found = NULL;

	if (!known)
		return now;
	if (strncmp(now, before, n) == 0)
		return now + n;
	for (const char *p = now; (p = strstr(p, end)); p++)
		found = p + known;
	return found ? found : now;
}

/* The last lines of it. */
static const char *last_lines(const char *text, uint32_t lines)
{
	const char *p = text + strlen(text);

	if (p > text && p[-1] == '\n')
		p--;
	for (; p > text; p--)
		if (p[-1] == '\n' && --lines == 0)
			return p;
	return text;
}

int logs(struct cli *c)
{
	osb_cleanup(mem_freep) char *before = NULL;
	const char *count = cli_flag(c, "tail");
	uint32_t lines = 0;
	int code = 0;

	if (count && (!num_parse_u32(view_of(count), &lines) || lines < 1))
		return cli_usage(c, "--tail: '%s' is no number from 1 on", count);
	do {
		char *now = get_logs(c, c->box);
		const char *text = now;

		if (!now) {
			code = c->e.code == OSB_ERR_CANCELLED ? CLI_INTERRUPTED : CLI_FAILED;
			break;
		}
		if (before)
			text = news(before, now);
		else if (lines)
			text = last_lines(now, lines);
		code = show_raw(c, view_of(text));
		free(before);
		before = now;
		if (code == 0 && cli_has(c, "follow"))
			code = cli_pause(c, FOLLOW_MS);
	} while (code == 0 && cli_has(c, "follow"));
	return cli_has(c, "follow") && code == CLI_INTERRUPTED ? 0 : code;
}

/* ---- the older forms ---- */

static int devops(struct cli *c, const char *what, const char *const *flags)
{
	osb_cleanup(buf_done) struct buf target = BUF_INIT(4096);
	osb_cleanup(mem_freep) char *text = NULL;
	const char *mark = "?";
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
	code = cli_done(c, osb_diagnostics_text(c->box, buf_str(&target), &c->call, &text, &c->e));
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
