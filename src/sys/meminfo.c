/*
 * sys/meminfo.c - /proc/meminfo, /proc/stat, sched_getaffinity(2).
 */
#include "sys/meminfo.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macro.h"
#include "base/num.h"
#include "base/view.h"

#define TEXT_MAX 4096 /* what we want is at the beginning of both files */
#define CPUS_MAX 8192

static struct view read_start(const char *path, char text[TEXT_MAX])
{
	osb_cleanup(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return VIEW_NONE;
	do
		n = read(fd, text, TEXT_MAX);
	while (n < 0 && errno == EINTR);
	return view_mem(text, n > 0 ? (size_t)n : 0);
}

/* Cuts the next word off a line. */
static struct view word(struct view *line)
{
	struct view w;

	*line = view_trim(*line);
	if (!view_split(line, ' ', &w))
		return VIEW_NONE;
	return w;
}

void meminfo_read(const char *path, uint64_t *ret_total_bytes, uint64_t *ret_used_bytes)
{
	char text[TEXT_MAX];
	struct view rest = read_start(path, text), line;
	uint64_t total = 0, available = 0, kib;
	struct sysinfo si;

	while (view_split(&rest, '\n', &line)) {
		struct view name = word(&line);

		if (!num_parse_u64(word(&line), &kib))
			continue;
		if (view_is(name, "MemTotal:"))
			total = kib * 1024;
		else if (view_is(name, "MemAvailable:"))
			available = kib * 1024;
	}
	if (total == 0 && sysinfo(&si) == 0) {
		total = (uint64_t)si.totalram * si.mem_unit;
		available = ((uint64_t)si.freeram + si.bufferram) * si.mem_unit;
	}
	*ret_total_bytes = total;
	*ret_used_bytes = total > available ? total - available : 0;
}

bool meminfo_cpu_busy(const char *path, uint64_t *ret_us)
{
	/* user nice system idle iowait irq softirq steal; guest time is part of user time */
	static const bool busy[] = {true, true, true, false, false, true, true, true};
	char text[TEXT_MAX];
	struct view rest = read_start(path, text), line;
	long ticks_per_s = sysconf(_SC_CLK_TCK);
	uint64_t ticks = 0, n;

	if (!view_split(&rest, '\n', &line) || !view_is(word(&line), "cpu") || ticks_per_s <= 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(busy); i++) {
		if (!num_parse_u64(word(&line), &n))
			break;
		ticks += busy[i] ? n : 0;
	}
	*ret_us = ticks * (1000000 / (uint64_t)ticks_per_s);
	return true;
}

unsigned meminfo_cpus(void)
{
	static const size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
	unsigned char set[CPU_ALLOC_SIZE(CPUS_MAX)] __attribute__((aligned(sizeof(long)))) = {0};
	int n = 0;

	if (sched_getaffinity(0, size, (cpu_set_t *)(void *)set) == 0)
		n = CPU_COUNT_S(size, (cpu_set_t *)(void *)set);
	return n > 0 ? (unsigned)n : 1;
}
