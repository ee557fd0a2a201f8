/* commands.c - output as it was written, exit codes, background, sessions, code, interrupts. */
#include <pthread.h>
#include <unistd.h>

#include "check.h"

static void foreground(osb_sandbox *s)
{
	static struct text out, err;
	const char *argv[] = {"printf", "%s|", "a b", "$HOME", "it's", NULL};
	const osb_pair env[] = {{"WORD", "from outside"}};
	osb_output both = {.out = collect, .arg = &out};
	osb_command o = OSB_COMMAND_INIT;
	osb_run run;

	o.command = "echo one; echo; echo $WORD; pwd";
	o.env = env;
	o.env_n = 1;
	o.cwd = "/usr";
	OK(osb_command_run(s, &o, &both, NULL, &run, &e));
	CHECK(strcmp(out.bytes, "one\n\nfrom outside\n/usr\n") == 0);
	CHECK(run.complete && run.has_exit_code && run.exit_code == 0 && run.id[0]);

	both = (osb_output){.err = collect, .arg = &err};
	o = (osb_command)OSB_COMMAND_INIT;
	o.command = "echo wrong >&2; exit 7";
	OK(osb_command_run(s, &o, &both, NULL, &run, &e));
	CHECK(strcmp(err.bytes, "wrong\n") == 0 && run.has_exit_code && run.exit_code == 7);
	CHECK(strcmp(run.error_name, "CommandExecError") == 0);

	out.n = 0;
	both = (osb_output){.out = collect, .arg = &out};
	o = (osb_command)OSB_COMMAND_INIT;
	o.argv = argv;
	OK(osb_command_run(s, &o, &both, NULL, &run, &e));
	CHECK(strncmp(out.bytes, "a b|$HOME|it's|", 15) == 0 && run.exit_code == 0);
}

static void background(osb_sandbox *s)
{
	osb_command_status *status = NULL;
	osb_command o = OSB_COMMAND_INIT;
	char *text = NULL;
	int64_t cursor = 0;
	size_t n = 0;
	osb_run run;

	o.command = "echo begun; sleep 1000";
	o.background = true;
	OK(osb_command_run(s, &o, NULL, NULL, &run, &e));
	CHECK(run.id[0] && !run.has_exit_code);
	for (n = 0; n < 6; osb_free(text))
		OK(osb_command_logs(s, run.id, &(int64_t){0}, NULL, &text, &n, &e));
	OK(osb_command_logs(s, run.id, &cursor, NULL, &text, &n, &e));
	CHECK(n == 6 && strcmp(text, "begun\n") == 0 && cursor == 6);
	osb_free(text);
	OK(osb_command_get(s, run.id, NULL, &status, &e));
	CHECK(status->running && status->started_at);
	osb_command_status_free(status);
	OK(osb_command_interrupt(s, run.id, NULL, &e));
	OK(osb_command_get(s, run.id, NULL, &status, &e));
	CHECK(!status->running && status->has_exit_code);
	osb_command_status_free(status);
}

static void session(osb_sandbox *s)
{
	static struct text out;
	osb_output output = {.out = collect, .arg = &out};
	osb_command o = OSB_COMMAND_INIT;
	char id[80];
	osb_run run;

	OK(osb_session_create(s, "/tmp", NULL, id, &e));
	o.command = "export KEPT=yes; cd /usr";
	OK(osb_session_run(s, id, &o, NULL, NULL, &run, &e));
	o.command = "echo $KEPT $PWD";
	OK(osb_session_run(s, id, &o, &output, NULL, &run, &e));
	CHECK(strcmp(out.bytes, "yes /usr\n") == 0 && run.exit_code == 0);
	OK(osb_session_delete(s, id, NULL, &e));
	CHECK(osb_session_delete(s, id, NULL, &e) == OSB_ERR_NOT_FOUND);
}

static int keep_result(void *arg, const char *mime_json)
{
	snprintf(arg, 256, "%s", mime_json);
	return 0;
}

static void code(osb_sandbox *s)
{
	char id[80], result[256] = "", *list = NULL;
	osb_output output = {.result = keep_result, .arg = result};
	osb_run run;

	OK(osb_code_create(s, "python", NULL, NULL, id, &e));
	OK(osb_code_run(s, "python", id, "x = 20", &output, NULL, &run, &e));
	OK(osb_code_run(s, "python", id, "x + 22", &output, NULL, &run, &e));
	CHECK(strstr(result, "42") && run.complete);
	OK(osb_code_run(s, "python", id, "1 / 0", &output, NULL, &run, &e));
	CHECK(strcmp(run.error_name, "ZeroDivisionError") == 0 && !run.has_exit_code);
	OK(osb_code_list(s, "python", NULL, &list, &e));
	CHECK(strstr(list, id));
	osb_free(list);
	OK(osb_code_delete(s, id, NULL, &e));
}

static void *cancel_soon(void *arg)
{
	usleep(200000);
	osb_cancel_now(arg);
	return NULL;
}

static int refuse(void *arg, const char *text, size_t n)
{
	(void)arg;
	(void)text;
	return n > 0;
}

static void cancelled(osb_sandbox *s)
{
	osb_cancel *cancel = osb_cancel_new();
	osb_call call = {.cancel = cancel};
	osb_output output = {.out = refuse};
	osb_command o = OSB_COMMAND_INIT;
	pthread_t thread;
	osb_run run;

	o.command = "sleep 1000";
	CHECK(pthread_create(&thread, NULL, cancel_soon, cancel) == 0);
	CHECK(osb_command_run(s, &o, NULL, &call, &run, &e) == OSB_ERR_CANCELLED);
	CHECK(pthread_join(thread, NULL) == 0);
	osb_cancel_reset(cancel);
	o.command = "true";
	OK(osb_command_run(s, &o, NULL, &call, &run, &e));
	osb_cancel_free(cancel);

	call = (osb_call){.timeout_ms = 300};
	o.command = "sleep 1000";
	CHECK(osb_command_run(s, &o, NULL, &call, &run, &e) == OSB_ERR_TIMEOUT);
	o.command = "echo something";
	CHECK(osb_command_run(s, &o, &output, NULL, &run, &e) == OSB_ERR_CANCELLED);
}

int main(void)
{
	osb_client *c = connect_client();
	osb_sandbox *s = make_sandbox(c);

	foreground(s);
	background(s);
	session(s);
	code(s);
	cancelled(s);
	finish(c, s);
	puts("fine");
	return 0;
}
