/*
 * Stands in for execd in the warden's tests: waits for its start file, then runs what each
 * connection asks for.
 *
 * Descriptor 3 listens, 4 brings the start file, 5 and 6 are the log and the status file.  A
 * connection sends one command and closes its sending side; it gets what the command writes.  A
 * command that begins with "!" is the path of a program: not every image has a shell.
 */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LISTEN_FD = 3, START_FD = 4, LOG_FD = 5 };

static void await(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (poll(&p, 1, -1) < 0)
		_exit(3);
}

/* The start file is a descriptor that comes with one datagram; its text goes into the log.  A
 * datagram without one is the end: nobody wants this sandbox. */
static void await_start(void)
{
	char text[4096], word[16];
	struct iovec iov = {word, sizeof(word)};
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n;
	int fd;

	await(START_FD);
	if (recvmsg(START_FD, &m, MSG_CMSG_CLOEXEC) <= 0 || !CMSG_FIRSTHDR(&m))
		_exit(4);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	n = pread(fd, text, sizeof(text), 0);
	if (n < 0 || write(LOG_FD, text, (size_t)n) != n)
		_exit(5);
	close(fd);
	close(START_FD);
}

static void serve(int fd)
{
	static char command[65536];
	char *argv[] = {"sh", "-c", command, NULL};
	size_t len = 0;
	ssize_t n;

	while ((n = read(fd, command + len, sizeof(command) - 1 - len)) > 0)
		len += (size_t)n;
	dup2(fd, 1);
	dup2(fd, 2);
	for (int i = 3; i <= fd; i++)
		close(i);
	if (command[0] == '!')
		execl(command + 1, command + 1, (char *)NULL);
	execv("/bin/sh", argv);
	_exit(127);
}

int main(void)
{
	signal(SIGCHLD, SIG_IGN);
	await_start();
	for (;;) {
		int fd;

		await(LISTEN_FD);
		fd = accept(LISTEN_FD, NULL, NULL);
		if (fd < 0)
			continue;
		if (fork() == 0)
			serve(fd);
		close(fd);
	}
}
