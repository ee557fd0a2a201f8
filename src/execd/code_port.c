/*
 * execd/code_port.c - see code_port.h.
 */
#include "execd/code_port.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "execd/app.h"
#include "execd/errors.h"
#include "net/http_server.h"

#define CONNECTIONS 64
#define IDLE_MS	    2000

struct code_port {
	struct http_server *server;
};

static void answer(struct http_exchange *x, void *app)
{
	(void)app;
	http_reply_error(x, 501, CODE_NOT_SUPPORTED,
			 "code runs without Jupyter here: use the routes of execd's /code");
}

static uint16_t port_of(const struct app *app)
{
	const char *text = strv_env_get(&app->env, VIEW("JUPYTER_PORT"));
	uint32_t port;

	if (text && num_parse_u32(view_of(text), &port) && port > 0 && port <= UINT16_MAX)
		return (uint16_t)port;
	return CODE_PORT;
}

struct code_port *code_port_new(struct app *app)
{
	struct http_limits limits = http_limits_default;
	struct code_port *p = mem_new(struct code_port);
	struct err e = ERR_NONE;

	limits.connections = CONNECTIONS;
	limits.idle_ms = limits.head_ms = limits.body_stall_ms = limits.write_stall_ms = IDLE_MS;
	if (http_server_new(app->loop, &limits, answer, NULL, &p->server, &e) < 0 ||
	    http_server_listen_tcp(p->server, "127.0.0.1", port_of(app), &e) < 0) {
		log_line(LOG_DEBUG, "nothing answers where clients look for code",
			 LOG_S("err", e.msg));
		code_port_free(p);
		return NULL;
	}
	return p;
}

void code_port_free(struct code_port *p)
{
	if (!p)
		return;
	http_server_free(p->server);
	free(p);
}
