/*
 * sys/meminfo.h - the machine's memory and processors, for when no cgroup tells.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* From /proc/meminfo (or another file of that form), else from sysinfo(2). */
void meminfo_read(const char *path, uint64_t *ret_total_bytes, uint64_t *ret_used_bytes);

/* Processor time that all processors together were busy, from /proc/stat; false without it. */
bool meminfo_cpu_busy(const char *path, uint64_t *ret_us);

/* Processors that we may run on; at least 1. */
unsigned meminfo_cpus(void);
