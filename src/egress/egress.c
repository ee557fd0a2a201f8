/*
 * egress/egress.c - what all boxes share: made in order, ended in the other.
 */
#include "egress/egress.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/map.h"
#include "egress/always.h"
#include "egress/api.h"
#include "egress/box.h"
#include "egress/control.h"
#include "egress/dns_cache.h"
#include "egress/dns_upstreams.h"
#include "egress/event_log.h"
#include "egress/relist.h"
#include "egress/settings.h"
#include "egress/vault_proxy.h"
#include "egress/webhook.h"
#include "net/loop.h"
#include "policy/net_table.h"

#define DNS_CACHE_BYTES (8u << 20)

static int open_boxes(struct egress *g, struct err *e)
{
	(void)e;
	g->boxes = map_new();
	return 0;
}

static void close_boxes(struct egress *g)
{
	struct view id;
	void *b;

	for (size_t pos = 0; g->boxes && map_next(g->boxes, &pos, &id, &b); pos = 0) {
		(void)map_remove(g->boxes, id);
		box_free(b);
	}
	map_free(take_ptr(g->boxes));
}

static void lists_changed(void *arg)
{
	struct egress *g = arg;

	relist_begin(g->relist);
}

static int open_lists(struct egress *g, struct err *e)
{
	g->relist = relist_new(g);
	return always_new(g->loop, g->settings->rules_dir, lists_changed, g, &g->always, e);
}

static void close_lists(struct egress *g)
{
	always_free(take_ptr(g->always));
	relist_free(take_ptr(g->relist));
}

static int open_events(struct egress *g, struct err *e)
{
	return event_log_open(g->settings->decisions_file, &g->event_log, e);
}

static void close_events(struct egress *g)
{
	event_log_close(take_ptr(g->event_log));
}

static int open_cache(struct egress *g, struct err *e)
{
	(void)e;
	g->cache = dns_cache_new(DNS_CACHE_BYTES);
	return 0;
}

static void close_cache(struct egress *g)
{
	dns_cache_free(take_ptr(g->cache));
}

static int open_upstreams(struct egress *g, struct err *e)
{
	return dns_upstreams_new(g, &g->upstreams, e);
}

static void close_upstreams(struct egress *g)
{
	dns_upstreams_free(take_ptr(g->upstreams));
}

static int open_webhook(struct egress *g, struct err *e)
{
	if (g->settings->deny_webhook[0] && webhook_check(g->settings->deny_webhook, e) < 0)
		return err_ctx(e, SETTINGS_PREFIX "DENY_WEBHOOK");
	g->webhook = webhook_new(g);
	return 0;
}

static void close_webhook(struct egress *g)
{
	webhook_free(take_ptr(g->webhook));
}

static const struct part {
	const char *name;
	int (*open)(struct egress *g, struct err *e);
	void (*close)(struct egress *g);
} parts[] = {
	{"decisions", open_events, close_events},
	{"lists", open_lists, close_lists},
	{"cache", open_cache, close_cache},
	{"name servers", open_upstreams, close_upstreams},
	{"webhook", open_webhook, close_webhook},
	{"vaults", vault_proxies_start, vault_proxies_stop},
	{"boxes", open_boxes, close_boxes},
};

int egress_start(struct egress *g, struct loop *l, const struct settings *s,
		 const unsigned char secret[32], struct err *e)
{
	g->loop = l;
	g->settings = s;
	memcpy(g->secret, secret, sizeof(g->secret));
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (parts[i].open(g, e) < 0)
			return err_ctx(e, "%s", parts[i].name);
	return 0;
}

void egress_stop(struct egress *g)
{
	control_free(take_ptr(g->control));
	api_free(take_ptr(g->api));
	for (size_t i = ARRAY_LEN(parts); i-- > 0;)
		parts[i].close(g);
	explicit_bzero(g->secret, sizeof(g->secret));
}

int egress_mark(const struct egress *g, int fd, struct err *e)
{
	const int mark = NET_TABLE_MARK;

	if (g->alone && setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) < 0)
		return err_set(e, -errno, "mark a socket: %m");
	return 0;
}
