/*
 * cli/cmd_shell.c - osb shell: a terminal in a sandbox, on this one.
 *
 * Ctrl-P Ctrl-Q leaves it running; with --session it is found again, and what was missed is shown.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/commands.h"

#define KEY_FIRST  0x10 /* Ctrl-P */
#define KEY_SECOND 0x11 /* Ctrl-Q */

#define END_AGAIN_MS 300

static volatile sig_atomic_t resized = 1;

static void on_resize(int signum)
{
	(void)signum;
	resized = 1;
}

struct shell {
	struct cli *cli;
	osb_terminal *terminal;
	struct termios before;
	bool raw;	/* the terminal's settings were changed */
	bool first_key; /* Ctrl-P came: is the next one Ctrl-Q? */
	bool input_ended;
	int exit_code; /* -1 = it runs */
	bool detached, closed;
	char why[256];
};

static void make_raw(struct shell *sh)
{
	struct termios raw;

	if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &sh->before) < 0)
		return;
	raw = sh->before;
	cfmakeraw(&raw);
	sh->raw = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

static void restore(struct shell *sh)
{
	if (sh->raw)
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &sh->before);
	sh->raw = false;
}

static int send_size(struct shell *sh)
{
	struct winsize size;

	resized = 0;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_col || !size.ws_row)
		return 0;
	return osb_terminal_resize(sh->terminal, size.ws_col, size.ws_row, &sh->cli->call,
				   &sh->cli->e);
}

/* What was typed, without the keys that leave; sets `detached` when they were pressed. */
static size_t filter_keys(struct shell *sh, const char *in, size_t n, char *out)
{
	size_t used = 0;

	for (size_t i = 0; i < n && !sh->detached; i++) {
		if (sh->first_key && in[i] == KEY_SECOND) {
			sh->detached = true;
			break;
		}
		if (sh->first_key)
			out[used++] = KEY_FIRST;
		sh->first_key = sh->raw && in[i] == KEY_FIRST;
		if (!sh->first_key)
			out[used++] = in[i];
	}
	return used;
}

/* The end of a pipe is the end of what is typed.  A shell that is just starting may not hear it: it
 * is said again until it has ended. */
static int type_end(struct shell *sh)
{
	return osb_terminal_write(sh->terminal, "\x04", 1, &sh->cli->call, &sh->cli->e);
}

static int take_keys(struct shell *sh)
{
	char in[4096], out[2 * sizeof(in)];
	ssize_t n = read(STDIN_FILENO, in, sizeof(in));
	size_t used;

	if (n < 0 && errno == EINTR)
		return 0;
	if (n <= 0) {
		sh->input_ended = true;
		return type_end(sh);
	}
	used = filter_keys(sh, in, (size_t)n, out);
	return used ? osb_terminal_write(sh->terminal, out, used, &sh->cli->call, &sh->cli->e) : 0;
}

static int take_output(struct shell *sh)
{
	osb_terminal_event event;
	int r = osb_terminal_read(sh->terminal, &sh->cli->call, &event, &sh->cli->e);

	if (r < 0)
		return r;
	if (event.kind == OSB_TERMINAL_OUTPUT || event.kind == OSB_TERMINAL_ERROR_OUTPUT) {
		if (fwrite(event.bytes, 1, event.n, stdout) != event.n || fflush(stdout))
			sh->closed = true;
	} else if (event.kind == OSB_TERMINAL_EXIT) {
		sh->exit_code = event.exit_code;
	} else if (event.kind == OSB_TERMINAL_CLOSED) {
		sh->closed = true;
		snprintf(sh->why, sizeof(sh->why), "%s", event.text ? event.text : "");
	}
	return 0;
}

static int serve(struct shell *sh)
{
	int r = 0;

	while (r == 0 && sh->exit_code < 0 && !sh->closed && !sh->detached) {
		struct pollfd p[] = {
			{.fd = osb_terminal_fd(sh->terminal), .events = POLLIN},
			{.fd = sh->input_ended ? -1 : STDIN_FILENO, .events = POLLIN},
		};

		bool pending = osb_terminal_pending(sh->terminal);
		int n;

		if (resized)
			r = send_size(sh);
		if (r < 0)
			break;
		n = poll(p, ARRAY_LEN(p), pending ? 0 : sh->input_ended ? END_AGAIN_MS : -1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0 && !pending)
			r = type_end(sh);
		if (p[1].revents)
			r = take_keys(sh);
		if (r == 0 && (pending || p[0].revents))
			r = take_output(sh);
	}
	return r;
}

static int end(struct shell *sh, const char *id, int r)
{
	struct cli *c = sh->cli;

	restore(sh);
	if (r < 0)
		return cli_fail(c);
	if (sh->detached) {
		fprintf(stderr, "\nosb: left; 'osb shell %s --session %s' comes back\n", c->args[0],
			id);
		return 0;
	}
	if (sh->exit_code < 0)
		return cli_error(c, "the terminal was closed%s%s", sh->why[0] ? ": " : "", sh->why);
	return sh->exit_code;
}

int shell(struct cli *c)
{
	struct shell sh = {.cli = c, .exit_code = -1};
	struct sigaction action = {.sa_handler = on_resize};
	osb_attach how = {.takeover = cli_has(c, "takeover"), .viewer = cli_has(c, "view")};
	const char *session = cli_flag(c, "session");
	char id[OSB_ID_MAX];
	int r = 0;

	snprintf(id, sizeof(id), "%s", session ? session : "");
	if (!session)
		r = osb_terminal_create(c->box, cli_flag(c, "workdir"), cli_flag(c, "command"),
					&c->call, id, &c->e);
	if (r == 0)
		r = osb_terminal_attach(c->box, id, &how, &c->call, &sh.terminal, &c->e);
	if (r == 0) {
		(void)sigaction(SIGWINCH, &action, NULL);
		make_raw(&sh);
		r = serve(&sh);
	}
	r = end(&sh, id, r);
	osb_terminal_close(sh.terminal);
	if (!session && id[0] && !sh.detached)
		(void)osb_terminal_delete(c->box, id, NULL, NULL);
	return r;
}
