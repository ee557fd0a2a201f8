/*
 * cli/cmd_command.c - osb command ...
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/foreground.h"
#include "cli/show.h"
#include "codec/json_writer.h"

/* The words from `first` on, and the options that all runs have; *ret_text is freed by the caller.
 */
static int read_command(struct cli *c, size_t first, osb_command *ret, char **ret_text)
{
	const char *timeout = cli_flag(c, "timeout");
	int64_t seconds;

	*ret = (osb_command)OSB_COMMAND_INIT;
	if (timeout && !cli_duration(timeout, &seconds))
		return cli_usage(c, "--timeout: '%s' is no duration like 30s or 5m", timeout);
	ret->timeout_ms = timeout ? (uint32_t)MIN(seconds * 1000, (int64_t)UINT32_MAX) : 0;
	ret->cwd = cli_flag(c, "workdir");
	*ret_text = cli_quote_words(c->args + first, c->args_n - first);
	ret->command = *ret_text;
	return 0;
}

static int show_started(struct cli *c, const osb_run *run)
{
	osb_cleanup(buf_done) struct buf json = BUF_INIT(CLI_JSON_MAX);
	struct json_writer w;

	if (c->quiet) {
		puts(run->id);
		return 0;
	}
	json_writer_init(&w, &json);
	json_write_object(&w);
	json_put_cstr(&w, "execution_id", run->id);
	json_put_cstr(&w, "sandbox_id", c->args[0]);
	json_put_cstr(&w, "mode", "background");
	json_write_object_end(&w);
	return json_writer_end(&w) < 0 ? CLI_FAILED : show_json(c, buf_view(&json), NULL);
}

int command_run(struct cli *c)
{
	osb_cleanup(mem_freep) char *text = NULL;
	osb_command what;
	osb_run run;
	int code = read_command(c, 1, &what, &text);

	what.background = cli_has(c, "background");
	if (code == 0 && !what.background && cli_has(c, "output") && c->format != FORMAT_RAW)
		code = cli_usage(c, "output of a command in the foreground is raw; others are for "
				    "--background");
	if (code)
		return code;
	if (what.background) {
		if (!cli_has(c, "output"))
			c->format = FORMAT_TABLE;
		code = cli_done(c, osb_command_run(c->box, &what, NULL, &c->call, &run, &c->e));
		if (code == 0)
			code = show_started(c, &run);
	} else {
		code = foreground_run(c, c->box, NULL, &what);
	}
	return code;
}

int command_status(struct cli *c)
{
	osb_cleanup(buf_done) struct buf json = BUF_INIT(CLI_JSON_MAX);
	osb_command_status *status = NULL;
	struct json_writer w;
	int code = cli_done(c, osb_command_get(c->box, c->args[1], &c->call, &status, &c->e));
	if (code)
		return code;
	json_writer_init(&w, &json);
	json_write_object(&w);
	json_put_cstr(&w, "id", c->args[1]);
	put_text(&w, "content", status->command);
	json_put_bool(&w, "running", status->running);
	json_write_key(&w, "exit_code");
	if (status->has_exit_code)
		json_write_int(&w, status->exit_code);
	else
		json_write_null(&w);
	put_text(&w, "error", status->error);
	put_time(&w, "started_at", status->started_at);
	put_time(&w, "finished_at", status->finished_at);
	json_write_object_end(&w);
	osb_command_status_free(status);
	return json_writer_end(&w) < 0 ? CLI_FAILED : show_json(c, buf_view(&json), NULL);
}

static int show_logs(struct cli *c, struct view text, int64_t cursor)
{
	osb_cleanup(buf_done) struct buf json = BUF_INIT(CLI_JSON_MAX);
	struct json_writer w;

	if (c->format == FORMAT_RAW || c->format == FORMAT_TABLE)
		return show_raw(c, text);
	json_writer_init(&w, &json);
	json_write_object(&w);
	json_put_string(&w, "content", text);
	json_put_int(&w, "cursor", cursor);
	json_write_object_end(&w);
	return json_writer_end(&w) < 0 ? CLI_FAILED : show_json(c, buf_view(&json), NULL);
}

/* Does it run?  -1 after a message. */
static int is_running(struct cli *c, osb_sandbox *s)
{
	osb_command_status *status = NULL;
	int running;

	if (osb_command_get(s, c->args[1], &c->call, &status, &c->e) < 0) {
		cli_fail(c);
		return -1;
	}
	running = status->running;
	osb_command_status_free(status);
	return running;
}

/* All there is, and with --follow what comes, until the command has ended. */
int command_logs(struct cli *c)
{
	const char *from = cli_flag(c, "cursor");
	int64_t cursor = 0;
	int code = 0, running = 1;

	if (from && (!num_parse_i64(view_of(from), &cursor) || cursor < 0))
		return cli_usage(c, "--cursor: '%s' is no number of bytes", from);
	while (code == 0 && running > 0) {
		char *text = NULL;
		size_t n = 0;

		/* Before the output: what came last is then in it. */
		running = cli_has(c, "follow") ? is_running(c, c->box) : 0;
		code = running < 0 ? CLI_FAILED : 0;
		if (code == 0)
			code = cli_done(c, osb_command_logs(c->box, c->args[1], &cursor, &c->call,
							    &text, &n, &c->e));
		if (code == 0)
			code = show_logs(c, view_mem(text, n), cursor);
		osb_free(text);
		if (code == 0 && running > 0 && n == 0)
			code = cli_pause(c, 200);
	}
	return code;
}

int command_interrupt(struct cli *c)
{
	int code = cli_done(c, osb_command_interrupt(c->box, c->args[1], &c->call, &c->e));
	return code ? code : show_done(c, "Interrupted: %s", c->args[1]);
}

/* ---- sessions ---- */

int session_create(struct cli *c)
{
	osb_cleanup(buf_done) struct buf json = BUF_INIT(CLI_JSON_MAX);
	struct json_writer w;
	char id[OSB_ID_MAX];
	int code = cli_done(
		c, osb_session_create(c->box, cli_flag(c, "workdir"), &c->call, id, &c->e));
	if (code)
		return code;
	if (c->quiet) {
		puts(id);
		return 0;
	}
	json_writer_init(&w, &json);
	json_write_object(&w);
	json_put_cstr(&w, "sandbox_id", c->args[0]);
	json_put_cstr(&w, "session_id", id);
	put_text(&w, "working_directory", cli_flag(c, "workdir"));
	json_write_object_end(&w);
	return json_writer_end(&w) < 0 ? CLI_FAILED : show_json(c, buf_view(&json), NULL);
}

int session_run(struct cli *c)
{
	osb_cleanup(mem_freep) char *text = NULL;
	osb_command what;
	int code = read_command(c, 2, &what, &text);

	if (code)
		return code;
	code = foreground_run(c, c->box, c->args[1], &what);
	return code;
}

int session_delete(struct cli *c)
{
	int code = cli_done(c, osb_session_delete(c->box, c->args[1], &c->call, &c->e));
	return code ? code : show_done(c, "Deleted session: %s", c->args[1]);
}
