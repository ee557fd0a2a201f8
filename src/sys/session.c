/*
 * sys/session.c - see session.h.
 *
 * A process found is signalled through a pidfd that is opened before its session is read again, so
 * that a process number that changed hands meanwhile hits nobody.
 */
#include "sys/session.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macro.h"
#include "base/num.h"
#include "base/view.h"

/* The session of a process by /proc/PID/stat, or -1. */
static pid_t session_of(const char *pid)
{
	osb_cleanup(fd_closep) int fd = -1;
	char path[64], text[512];
	const char *end;
	ssize_t n;
	int sid;

	(void)snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	/* The name in parentheses may hold anything: what counts stands behind the last one. */
	end = strrchr(text, ')');
	if (!end || sscanf(end + 1, " %*c %*d %*d %d", &sid) != 1)
		return -1;
	return sid;
}

static void signal_if_member(const char *pid, pid_t sid, int signum)
{
	osb_cleanup(fd_closep) int pidfd = -1;
	uint32_t number;

	if (!num_parse_u32(view_of(pid), &number) || session_of(pid) != sid)
		return;
	pidfd = (int)syscall(SYS_pidfd_open, (pid_t)number, 0);
	if (pidfd >= 0 && session_of(pid) == sid)
		(void)syscall(SYS_pidfd_send_signal, pidfd, signum, NULL, 0);
}

void session_signal(pid_t sid, int signum)
{
	DIR *d = opendir("/proc");
	struct dirent *entry;

	if (!d)
		return;
	while ((entry = readdir(d)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			signal_if_member(entry->d_name, sid, signum);
	closedir(d);
}
