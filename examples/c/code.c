/*
 * code.c - Python that remembers: a variable of one run is there in the next.
 */
#include <opensandbox/opensandbox.h>
#include <stdio.h>
#include <stdlib.h>

static int show_text(void *arg, const char *text, size_t n)
{
	(void)arg;
	return fwrite(text, 1, n, stdout) == n ? 0 : -1;
}

static int show_result(void *arg, const char *mime_json)
{
	(void)arg;
	return printf("result: %s\n", mime_json) < 0;
}

static int use_code(osb_sandbox *box, osb_error *e)
{
	static const char *const cells[] = {"x = 40", "print('x is', x)\nx + 2"};
	osb_output output = {.out = show_text, .err = show_text, .result = show_result};
	char context[80];
	osb_run run;
	int r = osb_code_create(box, "python", NULL, NULL, context, e);

	for (size_t i = 0; r == 0 && i < sizeof(cells) / sizeof(cells[0]); i++)
		r = osb_code_run(box, "python", context, cells[i], &output, NULL, &run, e);
	if (r == 0)
		r = osb_code_delete(box, context, NULL, e);
	return r;
}

int main(void)
{
	osb_create create = OSB_CREATE_INIT;
	osb_client *client = NULL;
	osb_sandbox *box = NULL;
	osb_error e = {0};
	int r;

	create.image = "opensandbox/code-interpreter:latest";
	r = osb_client_new(NULL, &client, &e);
	if (r == 0)
		r = osb_sandbox_create(client, &create, NULL, &box, &e);
	if (r == 0)
		r = use_code(box, &e);
	if (r < 0)
		fprintf(stderr, "code: %s\n", e.message);
	if (box)
		(void)osb_sandbox_kill(box, NULL, NULL);
	osb_sandbox_free(box);
	osb_client_free(client);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
