/*
 * warden/visit.c - setns by pidfd.  A way back that fails ends the warden: it must never go on in a
 * sandbox's namespace.
 */
#include "warden/visit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "warden/warden.h"

static int enter(int pidfd, int kind, struct err *e)
{
	if (setns(pidfd, kind) < 0)
		return err_set(e, -errno, "enter the sandbox's namespace: %m");
	return 0;
}

static void come_back(int own_fd, int kind)
{
	if (setns(own_fd, kind) < 0)
		abort();
}

int visit_connect(struct warden *w, int pidfd, uint16_t port, int *ret_fd, struct err *e)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
	osb_cleanup(fd_closep) int fd = -1;
	int r, on = 1;

	r = enter(pidfd, CLONE_NEWNET, e);
	if (r < 0)
		return r;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	r = fd < 0 ? -errno : 0;
	come_back(w->own_net_fd, CLONE_NEWNET);
	if (r < 0)
		return err_set(e, r, "socket in the sandbox: %s", strerror(-r));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	/* A socket stays in the namespace it was made in. */
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 && errno != EINPROGRESS)
		return err_set(e, -errno, "connect to port %u in the sandbox: %m", port);
	*ret_fd = take_fd(fd);
	return 0;
}

int visit_set_hostname(struct warden *w, int pidfd, const char *name, struct err *e)
{
	int r = enter(pidfd, CLONE_NEWUTS, e);

	if (r < 0)
		return r;
	r = sethostname(name, strlen(name)) < 0 ? -errno : 0;
	come_back(w->own_uts_fd, CLONE_NEWUTS);
	return r < 0 ? err_set(e, r, "set the hostname: %s", strerror(-r)) : 0;
}
