/*
 * execd/api_misc.c - is somebody there?
 */
#include "execd/errors.h"
#include "execd/routes.h"
#include "net/http_server.h"

static void ping(struct http_exchange *x, void *app)
{
	reply_empty(x);
}

/* The daemon listens only once it can work: whoever reads this has a ready one. */
static void ready(struct http_exchange *x, void *app)
{
	http_reply(x, 200, "application/json", VIEW("{\"initialized\":true}"));
}

const struct route api_misc_routes[] = {
	{"GET", "/ping", ping, 0},
	{"GET", "/ready", ready, 0},
	{0},
};
