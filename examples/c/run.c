/*
 * run.c - a sandbox, a command in it with its output as it comes, and its exit code.
 *
 *     cc run.c $(pkg-config --cflags --libs opensandbox) -o run && ./run 'echo hello'
 */
#include <opensandbox/opensandbox.h>
#include <stdio.h>

static int print(void *arg, const char *text, size_t n)
{
	return fwrite(text, 1, n, arg) == n ? fflush(arg) : -1;
}

static int print_error(void *arg, const char *text, size_t n)
{
	(void)arg;
	return print(stderr, text, n);
}

int main(int argc, char **argv)
{
	osb_output output = {.out = print, .err = print_error, .arg = stdout};
	osb_command command = OSB_COMMAND_INIT;
	osb_create create = OSB_CREATE_INIT;
	osb_client *client = NULL;
	osb_sandbox *box = NULL;
	osb_run run = {.exit_code = 1};
	osb_error e = {0};

	create.image = "opensandbox/code-interpreter:latest";
	command.command = argc > 1 ? argv[1] : "echo hello from $(hostname)";
	if (osb_client_new(NULL, &client, &e) < 0 ||
	    osb_sandbox_create(client, &create, NULL, &box, &e) < 0 ||
	    osb_command_run(box, &command, &output, NULL, &run, &e) < 0)
		fprintf(stderr, "run: %s\n", e.message);
	if (box)
		(void)osb_sandbox_kill(box, NULL, NULL);
	osb_sandbox_free(box);
	osb_client_free(client);
	return run.exit_code < 0 ? 255 : run.exit_code;
}
