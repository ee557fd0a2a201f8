/*
 * opensandbox/tunnel.h - plain TCP to a port in a sandbox, through a server of ours.
 *
 * A tunnel may be read by one thread and written by another, each one at a time, unless the
 * connection to the server is encrypted: then both belong to one thread.
 */
#pragma once

#include <opensandbox/sandbox.h>

OSB_BEGIN

typedef struct osb_tunnel osb_tunnel;

/* OSB_ERR_SERVER with HTTP 502: nothing listens there. */
OSB_API int osb_tunnel_open(osb_sandbox *s, uint16_t port, const osb_call *call, osb_tunnel **ret,
			    osb_error *e);
OSB_API void osb_tunnel_close(osb_tunnel *t); /* accepts NULL */

/* For poll(2): readable means that osb_tunnel_read() has something to do, and so does
 * osb_tunnel_pending(), which must be asked first. */
OSB_API int osb_tunnel_fd(const osb_tunnel *t);
OSB_API bool osb_tunnel_pending(const osb_tunnel *t);

/* At least one byte; *ret_n 0 = the other side has ended. */
OSB_API int osb_tunnel_read(osb_tunnel *t, void *bytes, size_t n, const osb_call *call,
			    size_t *ret_n, osb_error *e);
OSB_API int osb_tunnel_write(osb_tunnel *t, const void *bytes, size_t n, const osb_call *call,
			     osb_error *e);
/* Nothing more is written; the other direction goes on. */
OSB_API int osb_tunnel_end(osb_tunnel *t, osb_error *e);

OSB_END
