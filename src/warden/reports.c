/*
 * warden/reports.c - messages to the server.
 *
 * A server that has gone, or that does not read for a long while, is not waited for: the connection
 * is dropped, and the next one asks about every sandbox anew.
 */
#include "warden/reports.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "box/cgroup.h"
#include "box/netslot.h"
#include "codec/warden_msg.h"
#include "sys/seqpacket.h"
#include "warden/police.h"
#include "warden/serve.h"
#include "warden/warden.h"

#define PATIENCE_MS 10000

/* A server that adopts hundreds of sandboxes asks for all of them before it reads an answer. */
static bool has_room(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	int n;

	do
		n = poll(&p, 1, PATIENCE_MS);
	while (n < 0 && errno == EINTR);
	return n > 0 && !(p.revents & (POLLHUP | POLLERR));
}

void answer_with(struct warden *w, const struct warden_msg *m, const int *fds, size_t fds_n)
{
	struct err e = ERR_NONE;
	int r;

	if (w->control_fd < 0)
		return;
	do
		r = seqpacket_send(w->control_fd, warden_msg_view(m), fds, fds_n, &e);
	while (r == -EAGAIN && has_room(w->control_fd));
	if (r < 0) {
		log_line(LOG_WARN, "the server does not take a message, dropping it",
			 LOG_S("err", e.msg));
		serve_disconnect(w);
	}
}

void answer(struct warden *w, const struct warden_msg *m, int fd)
{
	answer_with(w, m, &fd, fd >= 0);
}

void answer_ok(struct warden *w, const struct warden_msg *request)
{
	struct warden_msg m;

	warden_msg_init(&m, WARDEN_OK, request->serial, request->id);
	answer(w, &m, -1);
}

void answer_failed(struct warden *w, const struct warden_msg *request, const struct err *e)
{
	struct warden_msg m;

	warden_msg_init(&m, WARDEN_FAILED, request->serial, request->id);
	m.failed.code = e->code;
	snprintf(m.failed.text, sizeof(m.failed.text), "%s", e->msg);
	answer(w, &m, -1);
}

void report_hello(struct warden *w)
{
	const char *missing[] = {
		netslots_missing(w->nets),
		cgroups_missing(w->cgroups),
		police_missing(w->police),
	};
	struct warden_msg m;
	size_t len = 0;

	warden_msg_init(&m, WARDEN_HELLO, 0, NULL);
	m.hello.capabilities = cgroups_capabilities(w->cgroups);
	if (netslots_nat(w->nets))
		m.hello.capabilities |= WARDEN_CAN_NAT;
	if (police_possible(w->police))
		m.hello.capabilities |= WARDEN_CAN_POLICE;
	for (size_t i = 0; i < ARRAY_LEN(missing) && len < sizeof(m.hello.missing); i++)
		if (*missing[i])
			len += (size_t)snprintf(m.hello.missing + len,
						sizeof(m.hello.missing) - len, "%s%s",
						len ? "; " : "", missing[i]);
	answer(w, &m, -1);
}

void report_exit(const struct box *b)
{
	struct warden_msg m;

	warden_msg_init(&m, WARDEN_EXITED, 0, b->name);
	m.exited.status = b->exit_status;
	m.exited.oom = b->cgroup && cgroup_oom_kills(b->cgroup) > 0;
	answer(b->warden, &m, -1);
}

void report_oom(const struct box *b)
{
	struct warden_msg m;

	warden_msg_init(&m, WARDEN_OOM, 0, b->name);
	answer(b->warden, &m, -1);
}
