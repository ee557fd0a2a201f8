/*
 * sdk/client.c - a client and its idle connections.
 */
#include <opensandbox/client.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "sdk/client_int.h"
#include "sdk/wire.h"

#define IDLE_MAX    16
#define IDLE_MAX_US (20 * 1000000ull) /* servers close theirs after thirty seconds */

struct kept {
	struct list link;
	struct wire *wire;
	uint64_t since_us;
	bool tls;
	char authority[sizeof(((struct address *)0)->authority)];
	char unix_path[sizeof(((struct address *)0)->unix_path)];
};

static void drop(osb_client *c, struct kept *k)
{
	list_remove(&k->link);
	c->idle_n--;
	wire_close(k->wire);
	free(k);
}

static bool leads_to(const struct kept *k, const struct address *a)
{
	return k->tls == a->tls && strcmp(k->authority, a->authority) == 0 &&
	       strcmp(k->unix_path, a->unix_path) == 0;
}

static struct wire *find_idle(osb_client *c, const struct address *a)
{
	uint64_t now = clock_mono_us();
	struct wire *found = NULL;

	(void)pthread_mutex_lock(&c->lock);
	list_each_safe (it, next, &c->idle) {
		struct kept *k = list_entry(it, struct kept, link);

		if (now - k->since_us > IDLE_MAX_US || wire_is_stale(k->wire)) {
			drop(c, k);
		} else if (!found && leads_to(k, a)) {
			found = take_ptr(k->wire);
			drop(c, k);
		}
	}
	(void)pthread_mutex_unlock(&c->lock);
	return found;
}

static int get_trust(osb_client *c, struct wire_trust **ret, struct err *e)
{
	int r = 0;

	(void)pthread_mutex_lock(&c->lock);
	if (!c->trust)
		r = wire_trust_new(c->ca_file, &c->trust, e);
	*ret = c->trust;
	(void)pthread_mutex_unlock(&c->lock);
	return r;
}

int client_connect(osb_client *c, const struct address *a, bool fresh,
		   const struct wire_limit *limit, struct wire **ret, bool *ret_used, struct err *e)
{
	struct wire_trust *trust = NULL;

	*ret = fresh ? NULL : find_idle(c, a);
	*ret_used = *ret != NULL;
	if (*ret)
		return 0;
	if (a->tls && get_trust(c, &trust, e) < 0)
		return e->code;
	return wire_open(a, trust, limit, ret, e);
}

void client_keep(osb_client *c, const struct address *a, struct wire *w)
{
	struct kept *k = mem_new(struct kept);

	k->wire = w;
	k->since_us = clock_mono_us();
	k->tls = a->tls;
	memcpy(k->authority, a->authority, sizeof(k->authority));
	memcpy(k->unix_path, a->unix_path, sizeof(k->unix_path));
	(void)pthread_mutex_lock(&c->lock);
	list_push_front(&c->idle, &k->link);
	if (++c->idle_n > IDLE_MAX)
		drop(c, list_entry(c->idle.prev, struct kept, link));
	(void)pthread_mutex_unlock(&c->lock);
}

const char *osb_client_url(const osb_client *c)
{
	return c->url;
}

void osb_client_free(osb_client *c)
{
	if (!c)
		return;
	list_each_safe (it, next, &c->idle)
		drop(c, list_entry(it, struct kept, link));
	wire_trust_free(c->trust);
	(void)pthread_mutex_destroy(&c->lock);
	for (size_t i = 0; i < c->headers_n; i++) {
		free((char *)c->headers[i].name);
		free((char *)c->headers[i].value);
	}
	free(c->headers);
	free(c->url);
	if (c->api_key)
		explicit_bzero(c->api_key, strlen(c->api_key));
	free(c->api_key);
	free(c->user_agent);
	free(c->ca_file);
	free(c);
}

void osb_free(void *p)
{
	free(p);
}
