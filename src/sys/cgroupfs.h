/*
 * sys/cgroupfs.h - what our own cgroup uses and may use, by version 2 or version 1 of cgroups.
 *
 * Usage is that of the nearest cgroup that tells it; a limit is the lowest from ours up to the
 * highest that can be seen.  What nobody tells is 0.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cgroupfs_usage {
	uint64_t cpu_us;       /* processor time used so far */
	double cpu_max;	       /* processors that may be used at once */
	uint64_t memory_bytes; /* in use, without file pages that could be dropped at once */
	uint64_t memory_max;
	bool has_cpu, has_cpu_max, has_memory, has_memory_max;
};

/* `mount`: "/sys/fs/cgroup"; `self`: "/proc/self/cgroup".  Missing files are no failure. */
void cgroupfs_read(const char *mount, const char *self, struct cgroupfs_usage *ret);
