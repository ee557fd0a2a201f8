/*
 * sys/pty.c - opens both ends of a terminal without naming the slave.
 */
#include "sys/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

/* A container may mount a devpts of its own without the usual link to it. */
static const char *const multiplexers[] = {"/dev/ptmx", "/dev/pts/ptmx"};

static int open_master(void)
{
	int fd = -1;

	for (size_t i = 0; i < ARRAY_LEN(multiplexers) && fd < 0; i++)
		fd = open(multiplexers[i], O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	return fd;
}

int pty_open(uint16_t cols, uint16_t rows, int *ret_master, int *ret_slave, struct err *e)
{
	osb_cleanup(fd_closep) int master = -1;
	osb_cleanup(fd_closep) int slave = -1;
	int r;

	master = open_master();
	if (master < 0)
		return err_set(e, -errno, "open a terminal: %m");
	if (ioctl(master, TIOCSPTLCK, &(int){0}) < 0)
		return err_set(e, -errno, "unlock the terminal: %m");
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return err_set(e, -errno, "open the terminal's other end: %m");
	r = pty_resize(master, cols, rows);
	if (r < 0)
		return err_set(e, r, "set the terminal's size");
	*ret_master = take_fd(master);
	*ret_slave = take_fd(slave);
	return 0;
}

int pty_resize(int master, uint16_t cols, uint16_t rows)
{
	struct winsize size = {.ws_col = cols, .ws_row = rows};

	return ioctl(master, TIOCSWINSZ, &size) < 0 ? -errno : 0;
}

pid_t pty_foreground(int master)
{
	pid_t group;

	return ioctl(master, TIOCGPGRP, &group) < 0 || group <= 1 ? -1 : group;
}
