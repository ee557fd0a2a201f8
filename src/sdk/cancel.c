/*
 * sdk/cancel.c - an eventfd: written from wherever, polled beside every socket.
 */
#include "sdk/cancel.h"

#include <opensandbox/client.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

osb_cancel *osb_cancel_new(void)
{
	osb_cancel *c = mem_new(osb_cancel);

	c->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return c;
}

void osb_cancel_now(osb_cancel *c)
{
	uint64_t one = 1;

	/* It can only fail when it is set already. */
	if (write(c->fd, &one, sizeof(one)) < 0)
		return;
}

void osb_cancel_reset(osb_cancel *c)
{
	uint64_t ignored;

	if (read(c->fd, &ignored, sizeof(ignored)) < 0)
		return;
}

void osb_cancel_free(osb_cancel *c)
{
	if (!c)
		return;
	fd_close(c->fd);
	free(c);
}
