/*
 * Cgroups of both versions, as made-up trees of files.
 */
#include "sys/cgroupfs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/macro.h"
#include "sys/meminfo.h"

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	return remove(path);
}

static int setup(void **state)
{
	char *dir = strdup("/tmp/osb-cgroup-test-XXXXXX");

	*state = dir;
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	nftw(*state, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	free(*state);
	return 0;
}

/* Writes a file and the directories above it. */
static void put(const char *dir, const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	for (char *p = path + strlen(dir) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(path, 0755);
		*p = '/';
	}
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static struct cgroupfs_usage usage_of(const char *dir)
{
	char self[PATH_MAX], mount[PATH_MAX];
	struct cgroupfs_usage u;

	snprintf(self, sizeof(self), "%s/self", dir);
	snprintf(mount, sizeof(mount), "%s/cg", dir);
	cgroupfs_read(mount, self, &u);
	return u;
}

static void version_2_tells_usage_and_the_lowest_limit(void **state)
{
	const char *dir = *state;
	struct cgroupfs_usage u;

	put(dir, "self", "0::/pod/box\n");
	put(dir, "cg/pod/box/cpu.stat", "usage_usec 123456\nuser_usec 1\n");
	put(dir, "cg/pod/box/cpu.max", "max 100000\n");
	put(dir, "cg/pod/cpu.max", "150000 100000\n");
	put(dir, "cg/pod/box/memory.current", "1048576\n");
	put(dir, "cg/pod/box/memory.stat", "anon 1\nfile 2\ninactive_file 48576\n");
	put(dir, "cg/pod/box/memory.max", "4194304\n");
	put(dir, "cg/pod/memory.max", "max\n");
	u = usage_of(dir);
	assert_true(u.has_cpu && u.has_cpu_max && u.has_memory && u.has_memory_max);
	assert_int_equal(u.cpu_us, 123456);
	assert_true(u.cpu_max > 1.49 && u.cpu_max < 1.51);
	assert_int_equal(u.memory_bytes, 1000000);
	assert_int_equal(u.memory_max, 4194304);
}

static void version_1_tells_the_same(void **state)
{
	const char *dir = *state;
	struct cgroupfs_usage u;

	put(dir, "self", "9:name=systemd:/\n4:memory:/box\n2:cpu,cpuacct:/box\n0::/\n");
	put(dir, "cg/cpuacct/box/cpuacct.usage", "5000000\n");
	put(dir, "cg/cpu/box/cpu.cfs_quota_us", "50000\n");
	put(dir, "cg/cpu/box/cpu.cfs_period_us", "100000\n");
	put(dir, "cg/cpu/cpu.cfs_quota_us", "-1\n");
	put(dir, "cg/memory/box/memory.usage_in_bytes", "900\n");
	put(dir, "cg/memory/box/memory.stat", "inactive_file 5\ntotal_inactive_file 1000\n");
	put(dir, "cg/memory/box/memory.limit_in_bytes", "9223372036854771712\n");
	put(dir, "cg/memory/memory.limit_in_bytes", "2000\n");
	u = usage_of(dir);
	assert_true(u.has_cpu && u.has_cpu_max && u.has_memory && u.has_memory_max);
	assert_int_equal(u.cpu_us, 5000);
	assert_true(u.cpu_max > 0.49 && u.cpu_max < 0.51);
	assert_int_equal(u.memory_bytes, 0);
	assert_int_equal(u.memory_max, 2000);
}

/* A container that sees only its own part of the hierarchy, under the host's name for it. */
static void a_path_that_is_not_there_means_the_root(void **state)
{
	const char *dir = *state;
	struct cgroupfs_usage u;

	put(dir, "self", "4:memory:/docker/abc\n0::/docker/abc\n");
	put(dir, "cg/memory/memory.usage_in_bytes", "77\n");
	put(dir, "cg/unified/cpu.stat", "usage_usec 9\n");
	u = usage_of(dir);
	assert_true(u.has_memory && u.memory_bytes == 77);
	assert_true(u.has_cpu && u.cpu_us == 9);
	assert_false(u.has_memory_max || u.has_cpu_max);
}

static void nonsense_is_nothing(void **state)
{
	static const char *const selves[] = {
		"", "\n", ":::\n", "0:/x\n", "0::", "0::relative\n", "0::/../../..\n", "x",
	};
	const char *dir = *state;

	put(dir, "cg/cpu.max", "0 0\n");
	put(dir, "cg/memory.max", "-5\n");
	put(dir, "cg/memory.current", "many\n");
	put(dir, "cg/cpu.stat", "usage_usec\nusage_usec 1x\n");
	for (size_t i = 0; i < ARRAY_LEN(selves); i++) {
		struct cgroupfs_usage u;

		put(dir, "self", selves[i]);
		u = usage_of(dir);
		assert_false(u.has_cpu || u.has_cpu_max || u.has_memory || u.has_memory_max);
	}
}

static void the_machine_tells_its_memory(void **state)
{
	const char *dir = *state;
	char path[PATH_MAX];
	uint64_t total = 0, used = 0;

	put(dir, "meminfo", "MemTotal:       2048 kB\nMemFree:   1 kB\nMemAvailable:   1024 kB\n");
	snprintf(path, sizeof(path), "%s/meminfo", dir);
	meminfo_read(path, &total, &used);
	assert_int_equal(total, 2048 * 1024);
	assert_int_equal(used, 1024 * 1024);

	/* Without the file the kernel is asked. */
	meminfo_read("/nonexistent", &total, &used);
	assert_true(total > 0 && used <= total);
}

static void the_machine_tells_its_busy_time(void **state)
{
	const char *dir = *state;
	char path[PATH_MAX];
	uint64_t us = 0;

	snprintf(path, sizeof(path), "%s/stat", dir);
	put(dir, "stat", "cpu  100 10 20 1000 500 1 2 3 50 0\ncpu0 1\n");
	assert_true(meminfo_cpu_busy(path, &us));
	assert_int_equal(us, 136 * 10000);
	put(dir, "stat", "intr 1 2 3\n");
	assert_false(meminfo_cpu_busy(path, &us));
	assert_false(meminfo_cpu_busy("/nonexistent", &us));
	assert_true(meminfo_cpus() >= 1);
}

#define with_dir(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_dir(version_2_tells_usage_and_the_lowest_limit),
		with_dir(version_1_tells_the_same),
		with_dir(a_path_that_is_not_there_means_the_root),
		with_dir(nonsense_is_nothing),
		with_dir(the_machine_tells_its_memory),
		with_dir(the_machine_tells_its_busy_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
