/*
 * A fresh directory per test, removed afterwards with all that is in it.
 */
#pragma once

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"

struct file_test {
	char dir[64];
};

static inline int file_test_remove(const char *path, const struct stat *st, int kind,
				   struct FTW *ftw)
{
	return remove(path);
}

static inline int file_test_setup(void **state)
{
	struct file_test *t = calloc(1, sizeof(*t));

	strcpy(t->dir, "/tmp/osb-file-test-XXXXXX");
	if (!mkdtemp(t->dir))
		return -1;
	*state = t;
	return 0;
}

static inline int file_test_teardown(void **state)
{
	struct file_test *t = *state;

	nftw(t->dir, file_test_remove, 16, FTW_DEPTH | FTW_PHYS);
	free(t);
	return 0;
}

/* "<dir>/<name>" in one of a few buffers that take turns. */
static inline const char *file_test_path(const struct file_test *t, const char *name)
{
	static char paths[4][PATH_MAX];
	static unsigned turn;
	char *path = paths[turn++ % 4];

	snprintf(path, PATH_MAX, "%s/%s", t->dir, name);
	return path;
}

static inline void file_test_write(const struct file_test *t, const char *name, const char *text)
{
	FILE *f = fopen(file_test_path(t, name), "w");

	if (!f || fputs(text, f) < 0 || fclose(f) != 0)
		abort();
}

/* The content, at most 4095 bytes of it, in a static buffer; NULL when it can not be opened. */
static inline const char *file_test_read(const struct file_test *t, const char *name)
{
	static char text[4096];
	FILE *f = fopen(file_test_path(t, name), "r");

	if (!f)
		return NULL;
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	return text;
}

#define file_test(f) cmocka_unit_test_setup_teardown(f, file_test_setup, file_test_teardown)
