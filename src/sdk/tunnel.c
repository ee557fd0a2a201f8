/*
 * sdk/tunnel.c - see opensandbox/tunnel.h.
 */
#include <opensandbox/tunnel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "sdk/asking.h"
#include "sdk/client_int.h"
#include "sdk/fail.h"
#include "sdk/sandbox_int.h"
#include "sdk/wire.h"

#define REST_MAX (1u << 20)

struct osb_tunnel {
	struct wire *wire;
	struct buf rest; /* what came with the server's answer */
};

int osb_tunnel_open(osb_sandbox *s, uint16_t port, const osb_call *call, osb_tunnel **ret,
		    osb_error *e)
{
	osb_tunnel *t = mem_new(osb_tunnel);
	struct asking q;
	char rest[32];
	int r;

	snprintf(rest, sizeof(rest), "/tunnel/%u", port);
	sandbox_asking(s, "GET", rest, &q);
	asking_header(&q, "Connection", "Upgrade");
	asking_header(&q, "Upgrade", "tcp");
	q.ask.target = buf_view(&q.target);
	buf_init(&t->rest, REST_MAX);
	r = ask_upgrade(s->client, &q.ask, call, &t->wire, &t->rest, e);
	asking_done(&q);
	if (r < 0)
		osb_tunnel_close(t);
	else
		*ret = t;
	return r;
}

void osb_tunnel_close(osb_tunnel *t)
{
	if (!t)
		return;
	wire_close(t->wire);
	buf_done(&t->rest);
	free(t);
}

int osb_tunnel_fd(const osb_tunnel *t)
{
	return wire_fd(t->wire);
}

bool osb_tunnel_pending(const osb_tunnel *t)
{
	return t->rest.len > 0 || wire_buffered(t->wire);
}

/* Silence is no failure: only a limit of the call's own counts. */
static struct wire_limit limit_of(const osb_call *call)
{
	bool limited = call && call->timeout_ms && call->timeout_ms != OSB_FOREVER;

	return (struct wire_limit){
		.deadline_us = limited ? clock_mono_us() + (uint64_t)call->timeout_ms * 1000 : 0,
		.cancel = call ? call->cancel : NULL,
	};
}

int osb_tunnel_read(osb_tunnel *t, void *bytes, size_t n, const osb_call *call, size_t *ret_n,
		    osb_error *e)
{
	struct wire_limit limit = limit_of(call);
	struct err why = ERR_NONE;
	ssize_t got;

	fail_none(e);
	if (t->rest.len) {
		*ret_n = MIN(n, t->rest.len);
		memcpy(bytes, buf_view(&t->rest).p, *ret_n);
		buf_consume(&t->rest, *ret_n);
		return 0;
	}
	got = wire_read(t->wire, bytes, n, &limit, &why);
	if (got < 0)
		return fail_err(e, &why);
	*ret_n = (size_t)got;
	return 0;
}

int osb_tunnel_write(osb_tunnel *t, const void *bytes, size_t n, const osb_call *call, osb_error *e)
{
	struct wire_limit limit = limit_of(call);
	struct err why = ERR_NONE;

	fail_none(e);
	return wire_write(t->wire, view_mem(bytes, n), &limit, &why) < 0 ? fail_err(e, &why) : 0;
}

int osb_tunnel_end(osb_tunnel *t, osb_error *e)
{
	struct err why = ERR_NONE;

	fail_none(e);
	return wire_end(t->wire, &why) < 0 ? fail_err(e, &why) : 0;
}
