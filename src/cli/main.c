/*
 * cli/main.c - osb: sandboxes from the command line.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "cli/cli.h"

static osb_cancel *cancel;
static volatile sig_atomic_t interrupted;

static void on_interrupt(int signum)
{
	(void)signum;
	interrupted = 1;
	osb_cancel_now(cancel);
}

/* ---- messages ---- */

static const char *hint_of(const osb_error *e)
{
	switch (e->code) {
	case OSB_ERR_CONNECT:
		return "Is the server running?  --domain or OPEN_SANDBOX_DOMAIN says where it is.";
	case OSB_ERR_UNAUTHORIZED:
		return "Give the server's key with --api-key or OPEN_SANDBOX_API_KEY, or keep it: "
		       "osb config set connection.api_key KEY";
	case OSB_ERR_TLS:
		return "SSL_CERT_FILE names the authorities that are believed.";
	case OSB_ERR_TIMEOUT:
		return "--request-timeout gives it longer.";
	default:
		return NULL;
	}
}

static void say(const struct cli *c, const char *text)
{
	fprintf(stderr, "%sosb: %s%s\n", c->color ? "\033[31m" : "", text,
		c->color ? "\033[0m" : "");
}

int cli_error(struct cli *c, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	say(c, text);
	return CLI_FAILED;
}

int cli_fail(struct cli *c)
{
	const char *hint = hint_of(&c->e);

	if (c->e.code == OSB_ERR_CANCELLED)
		return CLI_INTERRUPTED;
	say(c, c->e.message);
	if (cli_has(c, "verbose"))
		fprintf(stderr, "     HTTP %d, code %s, request %s\n", c->e.http_status,
			c->e.api_code[0] ? c->e.api_code : "-",
			c->e.request_id[0] ? c->e.request_id : "-");
	if (hint)
		fprintf(stderr, "     %s\n", hint);
	return CLI_FAILED;
}

int cli_done(struct cli *c, int result)
{
	return result < 0 ? cli_fail(c) : 0;
}

int cli_pause(struct cli *c, int ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	(void)c;
	(void)nanosleep(&t, NULL);
	return interrupted ? CLI_INTERRUPTED : 0;
}

/* ---- the client ---- */

osb_client *cli_client(struct cli *c)
{
	const char *seconds = cli_flag(c, "request-timeout");
	osb_config config = {
		.domain = cli_flag(c, "domain"),
		.protocol = cli_flag(c, "protocol"),
		.api_key = cli_flag(c, "api-key"),
		.config_file = cli_flag(c, "config"),
		.use_server_proxy = cli_has(c, "use-server-proxy")	? 1
				    : cli_has(c, "no-use-server-proxy") ? -1
									: 0,
		.user_agent = "osb/" OSB_VERSION,
	};
	uint32_t n = 0;

	if (c->client)
		return c->client;
	if (seconds && num_parse_u32(view_of(seconds), &n))
		config.timeout_ms = n * 1000;
	if (osb_client_new(&config, &c->client, &c->e) < 0)
		cli_fail(c);
	return c->client;
}

osb_sandbox *cli_sandbox(struct cli *c)
{
	osb_client *client = cli_client(c);
	osb_sandbox *s = NULL;

	if (client && osb_sandbox_open(client, c->args[0], &s, &c->e) < 0)
		cli_fail(c);
	return s;
}

/* ---- the program ---- */

static void look_around(struct cli *c)
{
	const char *no_color = getenv("NO_COLOR");
	bool terminal = isatty(STDERR_FILENO) == 1;

	c->quiet = cli_has(c, "quiet");
	c->progress = terminal && !c->quiet;
	c->color = terminal && !cli_has(c, "no-color") && !(no_color && no_color[0]);
}

static void listen_to_interrupts(struct cli *c)
{
	struct sigaction action = {.sa_handler = on_interrupt};

	cancel = c->cancel = osb_cancel_new();
	c->call.cancel = cancel;
	(void)sigaction(SIGINT, &action, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
}

static int check_globals(struct cli *c)
{
	const char *seconds = cli_flag(c, "request-timeout"), *protocol = cli_flag(c, "protocol");
	uint32_t n;

	if (seconds && (!num_parse_u32(view_of(seconds), &n) || n < 1 || n > 86400))
		return cli_usage(c,
				 "--request-timeout: '%s' is no number of seconds from 1 to 86400",
				 seconds);
	if (protocol && strcmp(protocol, "http") != 0 && strcmp(protocol, "https") != 0)
		return cli_usage(c, "--protocol: '%s' is neither http nor https", protocol);
	return 0;
}

static bool takes_sandbox(const struct command *command)
{
	struct view arguments = view_of(command->arguments);

	return view_is(view_first(arguments, view_find(arguments, ' ')), "ID");
}

static int run(struct cli *c, int argc, char **argv)
{
	int r = cli_parse(c, argc, argv);

	look_around(c);
	if (r)
		return r < 0 ? 0 : r;
	if (cli_has(c, "version")) {
		puts("osb " OSB_VERSION);
		return 0;
	}
	if (!c->command || cli_has(c, "help"))
		return help_show(c, c->command ? c->command->path : "");
	r = check_globals(c);
	if (r == 0 && takes_sandbox(c->command)) {
		c->box = cli_sandbox(c);
		r = c->box ? 0 : CLI_FAILED;
	}
	return r ? r : c->command->run(c);
}

int main(int argc, char **argv)
{
	struct cli *c = mem_new(struct cli);
	int code;

	listen_to_interrupts(c);
	code = run(c, argc, argv);
	osb_sandbox_free(c->box);
	osb_client_free(c->client);
	osb_cancel_free(c->cancel);
	free(c->args);
	free(c);
	return code;
}
