/*
 * execd/metrics.c - our cgroup's numbers, the machine's where it has none.
 */
#include "execd/metrics.h"

#include "base/buf.h"
#include "base/clock.h"
#include "codec/json_writer.h"
#include "sys/cgroupfs.h"
#include "sys/meminfo.h"

#define MIB	    (1024.0 * 1024.0)
#define BASE_AGE_US 500000

static uint64_t cpu_used_us(const struct cgroupfs_usage *u)
{
	uint64_t us = 0;

	if (u->has_cpu)
		return u->cpu_us;
	return meminfo_cpu_busy("/proc/stat", &us) ? us : 0;
}

static void read_cgroup(struct cgroupfs_usage *ret)
{
	cgroupfs_read("/sys/fs/cgroup", "/proc/self/cgroup", ret);
}

void metrics_base_init(struct metrics_base *b)
{
	struct cgroupfs_usage u;

	read_cgroup(&u);
	b->at_us = clock_mono_us();
	b->cpu_us = cpu_used_us(&u);
}

static double percent(const struct metrics_base *b, uint64_t now_us, uint64_t cpu_us, double cpus)
{
	double pct;

	if (now_us <= b->at_us || cpu_us <= b->cpu_us)
		return 0;
	pct = 100.0 * (double)(cpu_us - b->cpu_us) / ((double)(now_us - b->at_us) * cpus);
	return pct > 100 ? 100 : pct;
}

void metrics_read(struct metrics_base *b, struct metrics *ret)
{
	uint64_t total, used, now_us, cpu_us;
	struct cgroupfs_usage u;

	read_cgroup(&u);
	now_us = clock_mono_us();
	cpu_us = cpu_used_us(&u);
	meminfo_read("/proc/meminfo", &total, &used);
	if (u.has_memory)
		used = u.memory_bytes;
	if (u.has_memory_max && (total == 0 || u.memory_max < total))
		total = u.memory_max;

	ret->cpu_count = meminfo_cpus();
	if (u.has_cpu_max && u.cpu_max < ret->cpu_count)
		ret->cpu_count = u.cpu_max;
	ret->cpu_used_pct = percent(b, now_us, cpu_us, ret->cpu_count);
	ret->mem_total_mib = (double)total / MIB;
	ret->mem_used_mib = (double)used / MIB;
	ret->timestamp_ms = clock_wall_ms();

	if (now_us - b->at_us >= BASE_AGE_US) {
		b->at_us = now_us;
		b->cpu_us = cpu_us;
	}
}

int metrics_write(const struct metrics *m, struct buf *out)
{
	const struct {
		const char *key;
		double value;
	} numbers[] = {
		{"cpu_count", m->cpu_count},
		{"cpu_used_pct", m->cpu_used_pct},
		{"mem_total_mib", m->mem_total_mib},
		{"mem_used_mib", m->mem_used_mib},
	};
	struct json_writer w;

	json_writer_init(&w, out);
	json_write_object(&w);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		json_write_key(&w, numbers[i].key);
		json_write_double(&w, numbers[i].value);
	}
	json_put_int(&w, "timestamp", (int64_t)m->timestamp_ms);
	json_write_object_end(&w);
	return json_writer_end(&w);
}
