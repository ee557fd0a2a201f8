/*
 * cli/cmd_code.c - osb code run: code in an interpreter that remembers, from a file, a pipe or a
 * prompt.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "codec/json.h"

static int put(FILE *to, const char *text, size_t n)
{
	return fwrite(text, 1, n, to) == n && fflush(to) == 0 ? 0 : -1;
}

static int on_out(void *arg, const char *text, size_t n)
{
	(void)arg;
	return put(stdout, text, n);
}

static int on_err(void *arg, const char *text, size_t n)
{
	(void)arg;
	return put(stderr, text, n);
}

/* The text of a value; pictures and the like are named. */
static int on_result(void *arg, const char *mime_json)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	const struct json *value;
	struct err e = ERR_NONE;
	struct view key, text;
	void *it = NULL;

	(void)arg;
	if (json_parse(view_of(mime_json), 0, &v, &e) < 0)
		return 0;
	if (json_str(json_get(v, "text"), &text) || json_str(json_get(v, "text/plain"), &text))
		printf(VIEW_FMT "\n", VIEW_ARG(text));
	while (json_next(v, &it, &key, &value))
		if (view_starts(key, VIEW("image/")))
			fprintf(stderr, "osb: (a picture, " VIEW_FMT ", is not shown)\n",
				VIEW_ARG(key));
	return fflush(stdout);
}

static int on_failed(void *arg, const char *name, const char *value, const char *const *traceback)
{
	(void)arg;
	if (!traceback[0])
		fprintf(stderr, "%s: %s\n", name, value);
	for (; *traceback; traceback++)
		fprintf(stderr, "%s\n", *traceback);
	return 0;
}

/* Exit code: 1 if the code failed. */
static int run_text(struct cli *c, osb_sandbox *s, const char *context, const char *text)
{
	osb_output output = {
		.out = on_out, .err = on_err, .result = on_result, .failed = on_failed};
	const char *language = cli_flag(c, "language");
	osb_run run;
	int code = cli_done(c, osb_code_run(s, language ? language : "python", context, text,
					    &output, &c->call, &run, &c->e));

	return code ? code : run.error_name[0] ? CLI_FAILED : 0;
}

/* Lines until an empty one, or one that ends a statement: what is typed is run when it is whole. */
static int converse(struct cli *c, osb_sandbox *s, const char *context)
{
	osb_cleanup(buf_done) struct buf code = BUF_INIT(1u << 20);
	osb_cleanup(mem_freep) char *line = NULL;
	bool terminal = isatty(STDIN_FILENO) == 1;
	size_t size = 0;
	ssize_t n;

	for (;;) {
		bool open;

		if (terminal)
			fputs(code.len ? "... " : ">>> ", stderr);
		n = getline(&line, &size, stdin);
		if (n < 0)
			break;
		/* A block goes on until an empty line. */
		open = (code.len && n > 1) || (n > 1 && line[n - 2] == ':');
		if (buf_append(&code, line, (size_t)n) < 0)
			return cli_error(c, "that is too much code at once");
		if (open || code.len <= 1) {
			if (code.len <= 1)
				buf_clear(&code);
			continue;
		}
		(void)run_text(c, s, context, buf_str(&code));
		osb_cancel_reset(c->cancel);
		buf_clear(&code);
	}
	if (terminal)
		fputc('\n', stderr);
	return code.len ? run_text(c, s, context, buf_str(&code)) : 0;
}

int code_run(struct cli *c)
{
	const char *language = cli_flag(c, "language"), *given = cli_flag(c, "context");
	osb_cleanup(mem_freep) char *file = NULL;
	const char *text = cli_flag(c, "code");
	char context[OSB_ID_MAX] = "";
	int code = 0;

	if (!text && c->args_n > 1 && !(text = file = cli_read_file(c, c->args[1], NULL)))
		return CLI_FAILED;
	if (!text && !isatty(STDIN_FILENO) && !(text = file = cli_read_file(c, "-", NULL)))
		return CLI_FAILED;
	if (!given)
		code = cli_done(c,
				osb_code_create(c->box, language, NULL, &c->call, context, &c->e));
	if (code == 0)
		code = text ? run_text(c, c->box, given ? given : context, text)
			    : converse(c, c->box, given ? given : context);
	if (!given && context[0] && !cli_has(c, "keep"))
		(void)osb_code_delete(c->box, context, NULL, NULL);
	else if (!given && context[0] && !c->quiet)
		fprintf(stderr, "osb: context kept: %s\n", context);
	return code;
}
