/*
 * sys/cgroupfs.c - reads the small text files of cgroup file systems.
 */
#include "sys/cgroupfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macro.h"
#include "base/num.h"
#include "base/view.h"

#define TEXT_MAX (16u << 10)

/* Version 1 writes "no limit" as a number near 2^63. */
#define NO_LIMIT (UINT64_C(1) << 62)

struct text {
	char bytes[TEXT_MAX];
	size_t len;
};

/* Where one controller's files are: `dir` and its parents down to the length `top`. */
struct place {
	char dir[PATH_MAX];
	size_t top;
	bool v2;
};

static bool read_text(const char *path, struct text *ret)
{
	osb_cleanup(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	ret->len = 0;
	while (fd >= 0 && ret->len < sizeof(ret->bytes)) {
		ssize_t n = read(fd, ret->bytes + ret->len, sizeof(ret->bytes) - ret->len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0;
		ret->len += (size_t)n;
	}
	return fd >= 0;
}

/* The file `name` in the first `len` bytes of the place's directory. */
static bool read_at(const struct place *p, size_t len, const char *name, struct text *ret)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%.*s/%s", (int)len, p->dir, name);

	return n > 0 && (size_t)n < sizeof(path) && read_text(path, ret);
}

/* The length of the directory above, or 0 when `len` was the highest. */
static size_t above(const struct place *p, size_t len)
{
	if (len <= p->top)
		return 0;
	while (len > p->top && p->dir[len - 1] != '/')
		len--;
	while (len > p->top && p->dir[len - 1] == '/')
		len--;
	return len;
}

/* The nearest file of that name, ours first. */
static bool read_nearest(const struct place *p, const char *name, struct text *ret)
{
	for (size_t len = strlen(p->dir); len > 0; len = above(p, len))
		if (read_at(p, len, name, ret))
			return true;
	return false;
}

static struct view first_word(struct view line)
{
	size_t end = 0;

	while (end < line.len && line.p[end] != ' ' && line.p[end] != '\n')
		end++;
	return view_first(line, end);
}

/* The number behind `key` in lines of "key number". */
static bool keyed_number(const struct text *t, const char *key, uint64_t *ret)
{
	struct view rest = {t->bytes, t->len}, line;

	while (view_split(&rest, '\n', &line)) {
		struct view name = first_word(line);

		if (view_is(name, key))
			return num_parse_u64(view_trim(view_skip(line, name.len)), ret);
	}
	return false;
}

static bool number(const struct text *t, uint64_t *ret)
{
	return num_parse_u64(first_word((struct view){t->bytes, t->len}), ret);
}

/* Does the list of controllers of a version 1 hierarchy name this one? */
static bool names(struct view controllers, const char *controller)
{
	struct view one;

	while (view_split(&controllers, ',', &one))
		if (view_is(one, controller))
			return true;
	return false;
}

/* A version 1 hierarchy of the controller if there is one, else version 2. */
static void find_place(const char *mount, const struct text *self, const char *controller,
		       struct place *ret)
{
	struct view rest = {self->bytes, self->len}, line, id, controllers, path = VIEW_NONE;
	char base[PATH_MAX];
	bool hybrid = false;

	ret->v2 = true;
	while (view_split(&rest, '\n', &line)) {
		if (!view_split(&line, ':', &id) || !view_split(&line, ':', &controllers))
			continue;
		if (controllers.len == 0) {
			if (ret->v2)
				path = line;
			continue;
		}
		hybrid = true;
		if (names(controllers, controller)) {
			ret->v2 = false;
			path = line;
		}
	}
	snprintf(base, sizeof(base), "%s%s%s", mount, ret->v2 && !hybrid ? "" : "/",
		 !ret->v2 ? controller
		 : hybrid ? "unified"
			  : "");
	ret->top = strlen(base);
	if (path.len == 0 || ret->top + path.len >= sizeof(ret->dir) || memchr(path.p, 0, path.len))
		path = VIEW_NONE;
	while (path.len > 0 && path.p[path.len - 1] == '/')
		path.len--;
	memcpy(ret->dir, base, ret->top);
	memcpy(ret->dir + ret->top, path.p ? path.p : "", path.len);
	ret->dir[ret->top + path.len] = '\0';
}

static void read_cpu_usage(const struct place *p, struct text *t, struct cgroupfs_usage *ret)
{
	uint64_t n;

	if (p->v2 && read_nearest(p, "cpu.stat", t) && keyed_number(t, "usage_usec", &n)) {
		ret->cpu_us = n;
		ret->has_cpu = true;
	} else if (!p->v2 && read_nearest(p, "cpuacct.usage", t) && number(t, &n)) {
		ret->cpu_us = n / 1000;
		ret->has_cpu = true;
	}
}

/* "quota period" of one directory; false when it has no limit. */
static bool cpu_quota(const struct place *p, size_t len, struct text *t, double *ret)
{
	uint64_t quota, period;
	struct view rest;

	if (p->v2) {
		if (!read_at(p, len, "cpu.max", t) || !number(t, &quota)) /* "max 100000" */
			return false;
		rest = view_skip((struct view){t->bytes, t->len},
				 first_word((struct view){t->bytes, t->len}).len + 1);
		if (!num_parse_u64(first_word(rest), &period))
			return false;
	} else {
		if (!read_at(p, len, "cpu.cfs_quota_us", t) || !number(t, &quota)) /* "-1" */
			return false;
		if (!read_at(p, len, "cpu.cfs_period_us", t) || !number(t, &period))
			return false;
	}
	if (quota == 0 || period == 0)
		return false;
	*ret = (double)quota / (double)period;
	return true;
}

static void read_cpu_max(const struct place *p, struct text *t, struct cgroupfs_usage *ret)
{
	double cpus;

	for (size_t len = strlen(p->dir); len > 0; len = above(p, len))
		if (cpu_quota(p, len, t, &cpus) && (!ret->has_cpu_max || cpus < ret->cpu_max)) {
			ret->cpu_max = cpus;
			ret->has_cpu_max = true;
		}
}

static void read_memory(const struct place *p, struct text *t, struct cgroupfs_usage *ret)
{
	uint64_t n, inactive;

	if (read_nearest(p, p->v2 ? "memory.current" : "memory.usage_in_bytes", t) &&
	    number(t, &n)) {
		ret->memory_bytes = n;
		ret->has_memory = true;
		if (read_nearest(p, "memory.stat", t) &&
		    keyed_number(t, p->v2 ? "inactive_file" : "total_inactive_file", &inactive))
			ret->memory_bytes = n > inactive ? n - inactive : 0;
	}
	for (size_t len = strlen(p->dir); len > 0; len = above(p, len)) {
		if (!read_at(p, len, p->v2 ? "memory.max" : "memory.limit_in_bytes", t) ||
		    !number(t, &n) || n >= NO_LIMIT)
			continue;
		if (!ret->has_memory_max || n < ret->memory_max)
			ret->memory_max = n;
		ret->has_memory_max = true;
	}
}

void cgroupfs_read(const char *mount, const char *self, struct cgroupfs_usage *ret)
{
	struct text own, t;
	struct place p;

	*ret = (struct cgroupfs_usage){0};
	if (!read_text(self, &own))
		return;
	find_place(mount, &own, "cpuacct", &p);
	read_cpu_usage(&p, &t, ret);
	find_place(mount, &own, "cpu", &p);
	read_cpu_max(&p, &t, ret);
	find_place(mount, &own, "memory", &p);
	read_memory(&p, &t, ret);
}
