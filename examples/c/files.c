/*
 * files.c - a file into a sandbox, a look at it, and back again.
 */
#include <opensandbox/opensandbox.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int use_files(osb_sandbox *box, osb_error *e)
{
	static const char text[] = "one\ntwo\n";
	const char *paths[] = {"/tmp/example/numbers.txt", NULL};
	osb_file_mode mode = {.mode = 0640};
	osb_file_list *list = NULL;
	char *bytes = NULL;
	size_t n = 0;
	int r;

	r = osb_file_write(box, paths[0], text, strlen(text), &mode, NULL, e);
	if (r == 0)
		r = osb_file_replace(box, paths[0], "two", "three", NULL, NULL, e);
	if (r == 0)
		r = osb_file_stat(box, paths, NULL, &list, e);
	if (r == 0)
		printf("%s: %lld bytes, mode %o\n", list->items[0].path,
		       (long long)list->items[0].size, list->items[0].mode);
	if (r == 0)
		r = osb_file_read(box, paths[0], NULL, &bytes, &n, e);
	if (r == 0)
		fwrite(bytes, 1, n, stdout);
	osb_free(bytes);
	osb_file_list_free(list);
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
		r = use_files(box, &e);
	if (r < 0)
		fprintf(stderr, "files: %s\n", e.message);
	if (box)
		(void)osb_sandbox_kill(box, NULL, NULL);
	osb_sandbox_free(box);
	osb_client_free(client);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
