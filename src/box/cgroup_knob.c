/*
 * box/cgroup_knob.c - cgroupfs judges a value inside write(2) and nowhere else: one call, checked.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "base/view.h"
#include "box/cgroup_int.h"

int knob_write(int dir_fd, const char *knob, const char *text, struct err *e)
{
	osb_cleanup(fd_closep) int fd = openat(dir_fd, knob, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return err_set(e, -errno, "open %s: %m", knob);
	if (write(fd, text, strlen(text)) < 0)
		return err_set(e, -errno, "write '%s' to %s: %m", text, knob);
	return 0;
}

int knob_write_u64(int dir_fd, const char *knob, uint64_t n, struct err *e)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, n);
	return knob_write(dir_fd, knob, text, e);
}

int knob_read(int dir_fd, const char *knob, char *ret, size_t size, struct err *e)
{
	osb_cleanup(fd_closep) int fd = openat(dir_fd, knob, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return err_set(e, -errno, "open %s: %m", knob);
	n = read(fd, ret, size - 1);
	if (n < 0)
		return err_set(e, -errno, "read %s: %m", knob);
	while (n > 0 && ret[n - 1] == '\n')
		n--;
	ret[n] = '\0';
	return 0;
}

uint64_t knob_read_u64(int dir_fd, const char *knob, uint64_t fallback)
{
	struct err e = ERR_NONE;
	char text[32];
	uint64_t n;

	if (dir_fd < 0 || knob_read(dir_fd, knob, text, sizeof(text), &e) < 0)
		return fallback;
	if (strcmp(text, "max") == 0)
		return UINT64_MAX;
	return num_parse_u64(view_of(text), &n) ? n : fallback;
}

uint64_t knob_read_field(int dir_fd, const char *knob, const char *key, uint64_t fallback)
{
	struct err e = ERR_NONE;
	struct view rest, line;
	char text[2048];

	if (dir_fd < 0 || knob_read(dir_fd, knob, text, sizeof(text), &e) < 0)
		return fallback;
	rest = view_of(text);
	while (view_split(&rest, '\n', &line)) {
		size_t blank = view_find(line, ' ');
		uint64_t n;

		if (view_is(view_first(line, blank), key) &&
		    num_parse_u64(view_skip(line, blank + 1), &n))
			return n;
	}
	return fallback;
}
