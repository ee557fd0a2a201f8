/*
 * cli/cmd_server.c - osb server status, osb top: how the server and its sandboxes are doing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/show.h"
#include "codec/json_writer.h"

#define ROWS_MAX 200 /* what a server gives on one page */

/* ---- status ---- */

/* How many are in a state; -1 after a message. */
static int count(struct cli *c, const char *state)
{
	const char *states[] = {state, NULL};
	osb_list filter = {.states = state ? states : NULL, .page_size = 1};
	osb_sandbox_page *page = NULL;
	int n;

	if (osb_sandbox_list(c->client, &filter, &c->call, &page, &c->e) < 0) {
		cli_fail(c);
		return -1;
	}
	n = page->total_items;
	osb_sandbox_page_free(page);
	return n;
}

int server_status(struct cli *c)
{
	static const char *const states[] = {"Running", "Paused", "Pending", "Failed",
					     "Terminated"};
	osb_cleanup(buf_done) struct buf json = BUF_INIT(CLI_JSON_MAX);
	osb_cleanup(mem_freep) char *version = NULL;
	uint64_t began;
	struct json_writer w;
	int code;

	if (!cli_client(c))
		return CLI_FAILED;
	began = clock_mono_us();
	code = cli_done(c, osb_server_version(c->client, &c->call, &version, &c->e));
	if (code)
		return code;
	json_writer_init(&w, &json);
	json_write_object(&w);
	json_put_cstr(&w, "url", osb_client_url(c->client));
	json_put_cstr(&w, "version", version);
	json_write_key(&w, "answered_in_ms");
	json_write_double(&w, (double)(clock_mono_us() - began) / 1000);
	json_write_key(&w, "sandboxes");
	json_write_object(&w);
	for (size_t i = 0; i < ARRAY_LEN(states); i++) {
		int n = count(c, states[i]);
		char name[16];

		if (n < 0)
			return CLI_FAILED;
		snprintf(name, sizeof(name), "%s", states[i]);
		name[0] = (char)(name[0] + 32);
		json_put_int(&w, name, n);
	}
	json_write_object_end(&w);
	json_write_object_end(&w);
	return json_writer_end(&w) < 0 ? CLI_FAILED : show_json(c, buf_view(&json), NULL);
}

/* ---- top ---- */

static void put_row(struct cli *c, struct json_writer *w, const osb_sandbox_info *info)
{
	osb_sandbox *s = NULL;
	osb_metrics m = {0};
	osb_error ignored;
	bool known = strcmp(info->state, "Running") == 0 &&
		     osb_sandbox_open(c->client, info->id, &s, &ignored) == 0 &&
		     osb_sandbox_metrics(s, &c->call, &m, &ignored) == 0;

	osb_sandbox_free(s);
	json_write_object(w);
	json_put_cstr(w, "id", info->id);
	json_put_cstr(w, "state", info->state);
	put_text(w, "image", info->image);
	json_write_key(w, "cpu_percent");
	if (known)
		json_write_double(w, m.cpu_used_percent);
	else
		json_write_null(w);
	json_write_key(w, "memory_mib");
	if (known)
		json_write_double(w, m.memory_used_mib);
	else
		json_write_null(w);
	put_time(w, "created_at", info->created_at);
	json_write_object_end(w);
}

static int show_once(struct cli *c)
{
	osb_cleanup(buf_done) struct buf json = BUF_INIT(CLI_JSON_MAX);
	osb_list filter = {.page_size = ROWS_MAX};
	osb_sandbox_page *page = NULL;
	struct json_writer w;
	int code = cli_done(c, osb_sandbox_list(c->client, &filter, &c->call, &page, &c->e));

	if (code)
		return code;
	json_writer_init(&w, &json);
	json_write_array(&w);
	for (size_t i = 0; i < page->items_n; i++)
		put_row(c, &w, page->items[i]);
	json_write_array_end(&w);
	osb_sandbox_page_free(page);
	if (json_writer_end(&w) < 0)
		return CLI_FAILED;
	return show_json(c, buf_view(&json), "id state cpu_percent:CPU% memory_mib:MIB image");
}

/* On a terminal again and again, else once. */
int top(struct cli *c)
{
	const char *text = cli_flag(c, "interval");
	bool live = isatty(STDOUT_FILENO) == 1 && c->format == FORMAT_TABLE && !cli_has(c, "once");
	int64_t seconds = 2;
	int code;

	if (text && !cli_duration(text, &seconds))
		return cli_usage(c, "--interval: '%s' is no duration like 2s", text);
	if (!cli_client(c))
		return CLI_FAILED;
	do {
		if (live)
			fputs("\033[H\033[2J", stdout);
		code = show_once(c);
		if (code == 0 && live)
			code = cli_pause(c, (int)MIN(seconds, (int64_t)3600) * 1000);
	} while (code == 0 && live);
	return live && code == CLI_INTERRUPTED ? 0 : code;
}
