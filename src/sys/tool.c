/*
 * sys/tool.c - files in memory instead of pipes: nobody waits for a reader.
 */
#include "sys/tool.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "sys/clone.h"
#include "sys/memfd.h"
#include "sys/spawn.h"

#define SEARCH_PATH "/usr/sbin:/usr/bin:/sbin:/bin"
#define LIMIT_MS    20000

static int await_end(int pidfd, const char *name, struct err *e)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	int status, n;

	do {
		n = poll(&p, 1, LIMIT_MS);
	} while (n < 0 && errno == EINTR);
	if (n <= 0) {
		clone_kill_and_reap(pidfd);
		return err_set(e, -ETIMEDOUT, "%s did not end within %d s", name, LIMIT_MS / 1000);
	}
	n = spawn_reap(pidfd, &status);
	if (n < 0)
		return err_set(e, n, "%s's end is not known", name);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void read_back(int fd, char *ret_text, size_t size)
{
	ssize_t n = pread(fd, ret_text, size - 1, 0);

	ret_text[n > 0 ? n : 0] = '\0';
}

int tool_run(const char *const *argv, struct view input, char *ret_text, size_t size, struct err *e)
{
	osb_cleanup(fd_closep) int in = -1, out = -1, pidfd = -1;
	static const char *const env[] = {"PATH=" SEARCH_PATH, "LC_ALL=C", NULL};
	struct spawn s = {
		.search_path = SEARCH_PATH,
		.argv = (char *const *)argv, /* exec's types are older than const */
		.env = (char *const *)env,
	};
	pid_t pid;
	int r = memfd_of("input", input, &in, e);

	if (r < 0)
		return r;
	out = memfd_create("output", MFD_CLOEXEC);
	if (out < 0 || lseek(in, 0, SEEK_SET) < 0)
		return err_set(e, -errno, "files for %s: %m", argv[0]);
	s.fds[0] = in;
	s.fds[1] = s.fds[2] = out;
	r = spawn(&s, &pid, &pidfd, e);
	if (r == 0)
		r = await_end(pidfd, argv[0], e);
	if (r >= 0)
		read_back(out, ret_text, size);
	return r;
}
