/*
 * sys/protect.c - prctl(2) and close_range(2) on ourselves.
 */
#include "sys/protect.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

#if defined(__SANITIZE_ADDRESS__)
#define TRACEABLE 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TRACEABLE 1
#endif
#endif
#ifndef TRACEABLE
#define TRACEABLE 0
#endif

#define FALLBACK_FDS 4096  /* looked at where close_range(2) is missing */
#define NOFILE_MAX   65536 /* open files that we want at most */

void protect_from_tracing(void)
{
	if (!TRACEABLE)
		(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

void protect_limit_memory(uint64_t bytes)
{
	struct rlimit l = {bytes, bytes};

	if (!TRACEABLE)
		(void)setrlimit(RLIMIT_DATA, &l);
}

static void fill_standard_fds(void)
{
	int fd = open("/dev/null", O_RDWR | O_NOCTTY);

	/* An empty root has no /dev/null: a socket without a peer keeps the number taken. */
	if (fd < 0)
		fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	while (fd >= 0 && fd < 2)
		fd = dup(fd);
	if (fd > 2)
		fd_close(fd);
}

void protect_descriptors(void)
{
	fill_standard_fds();
	if (syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
		return;
	for (int fd = 3; fd < FALLBACK_FDS; fd++) {
		int flags = fcntl(fd, F_GETFD);

		if (flags >= 0)
			(void)fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
	}
}

int protect_become_subreaper(void)
{
	return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 ? -errno : 0;
}

void protect_raise_nofile(struct rlimit *ret_before)
{
	struct rlimit raised;

	if (getrlimit(RLIMIT_NOFILE, ret_before) < 0)
		*ret_before = (struct rlimit){1024, 4096};
	raised = *ret_before;
	if (raised.rlim_cur >= NOFILE_MAX)
		return;
	raised.rlim_cur = raised.rlim_max < NOFILE_MAX ? raised.rlim_max : NOFILE_MAX;
	(void)setrlimit(RLIMIT_NOFILE, &raised);
}
