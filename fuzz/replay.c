/*
 * fuzz/replay.c - runs a fuzz target over files instead of random input.
 *
 * Arguments are files, or directories whose files are used in the order of their names.
 * A missing path is an empty corpus.  Prints how many inputs ran; a finding crashes.
 */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool run_file(const char *path, size_t size)
{
	/* Exactly as long as the input, so that a sanitizer sees one byte too far. */
	osb_cleanup(mem_freep) uint8_t *data = mem_alloc(size);
	FILE *f = fopen(path, "rbe");
	size_t got;

	if (!f) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return false;
	}
	got = fread(data, 1, size, f);
	(void)fclose(f);
	if (got != size) {
		fprintf(stderr, "%s: read %zu of %zu bytes\n", path, got, size);
		return false;
	}
	(void)LLVMFuzzerTestOneInput(data, size);
	return true;
}

/* Returns how many inputs ran, or -1. */
static int run_path(const char *path)
{
	struct dirent **names = NULL;
	struct stat st;
	int n, ran = 0;

	if (stat(path, &st) < 0)
		return errno == ENOENT ? 0 : -1;
	if (!S_ISDIR(st.st_mode))
		return run_file(path, (size_t)st.st_size) ? 1 : -1;

	n = scandir(path, &names, NULL, alphasort);
	if (n < 0)
		return -1;
	for (int i = 0; i < n; i++) {
		if (names[i]->d_name[0] != '.' && ran >= 0) {
			osb_cleanup(mem_freep) char *below =
				mem_printf("%s/%s", path, names[i]->d_name);
			int r = run_path(below);

			ran = r < 0 ? -1 : ran + r;
		}
		free(names[i]);
	}
	free(names);
	return ran;
}

int main(int argc, char **argv)
{
	int ran = 0;

	/* The empty input is in every corpus. */
	(void)LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
	for (int i = 1; i < argc; i++) {
		int r = run_path(argv[i]);

		if (r < 0) {
			fprintf(stderr, "%s: cannot be replayed\n", argv[i]);
			return EXIT_FAILURE;
		}
		ran += r;
	}
	printf("%d inputs replayed\n", ran);
	return EXIT_SUCCESS;
}
