/*
 * server/https.c - certificates of the worker, first and later ones.
 */
#include "server/https.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/tls.h"
#include "net/tls_files.h"
#include "net/tls_front.h"

struct https {
	struct tls_server *server;
	struct tls_front *front;
};

int https_new(struct loop *l, struct http_server *http, int text_fd, size_t max, struct https **ret,
	      struct err *e)
{
	struct https *h = mem_new(struct https);
	int r = tls_files_use(text_fd, &h->server, e);

	if (r < 0) {
		free(h);
		return r;
	}
	h->front = tls_front_new(l, http, h->server, max);
	*ret = h;
	return 0;
}

void https_renew(struct https *h, int text_fd)
{
	struct err e = ERR_NONE;

	if (tls_files_use(text_fd, &h->server, &e) < 0)
		log_line(LOG_WARN, "a new certificate was not taken, keeping the old one",
			 LOG_S("err", e.msg));
	else
		log_line(LOG_INFO, "new connections get the new certificate");
}

void https_drain(struct https *h, uint64_t grace_ms, void (*done)(void *arg), void *arg)
{
	tls_front_drain(h->front, grace_ms, done, arg);
}

void https_free(struct https *h)
{
	if (!h)
		return;
	tls_front_free(h->front);
	tls_server_free(h->server);
	free(h);
}
