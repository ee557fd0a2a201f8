/*
 * sdk/place.c - where a sandbox's ports are, and requests that go there.
 *
 * Where execd and egress are is asked once per sandbox and shared by all threads that use it.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "codec/json.h"
#include "sdk/address.h"
#include "sdk/client_int.h"
#include "sdk/document.h"
#include "sdk/fail.h"
#include "sdk/place.h"
#include "sdk/sandbox_int.h"

struct place {
	atomic_int users;
	struct address address;
	osb_endpoint *endpoint;
};

/* ---- endpoints ---- */

static int read_endpoint(struct document *d, void *ret)
{
	osb_endpoint *p = ret;

	p->json = d->text;
	p->endpoint = document_str(d, d->json, "endpoint");
	p->headers = document_pairs(d, json_get(d->json, "headers"), &p->headers_n);
	if (!p->endpoint)
		return -1;
	p->url = view_find_view(view_of(p->endpoint), VIEW("://")) < strlen(p->endpoint)
			 ? p->endpoint
			 : arena_printf(&d->mem, "%s://%s", d->tls ? "https" : "http", p->endpoint);
	return p->url ? 0 : -1;
}

int osb_sandbox_endpoint(osb_sandbox *s, uint16_t port, int64_t expires_unix_s,
			 const osb_call *call, osb_endpoint **ret, osb_error *e)
{
	struct asking q;
	char rest[32];
	int r;

	snprintf(rest, sizeof(rest), "/endpoints/%u", port);
	sandbox_asking(s, "GET", rest, &q);
	asking_param(&q, "use_server_proxy", s->client->use_server_proxy ? "true" : "false");
	asking_number(&q, "expires", expires_unix_s);
	r = asking_object(s->client, &q, call, sizeof(**ret), read_endpoint, (void **)ret, e);
	asking_done(&q);
	return r;
}

void osb_endpoint_free(osb_endpoint *p)
{
	object_free(p);
}

/* ---- places ---- */

void place_drop(struct place *p)
{
	if (!p || atomic_fetch_sub(&p->users, 1) > 1)
		return;
	osb_endpoint_free(p->endpoint);
	free(p);
}

static int find_place(osb_sandbox *s, uint16_t port, const osb_call *call, struct place **ret,
		      osb_error *e)
{
	struct place *p = mem_new(struct place);
	struct err why = ERR_NONE;
	int r = osb_sandbox_endpoint(s, port, 0, call, &p->endpoint, e);

	if (r == 0 &&
	    address_parse(view_of(p->endpoint->url), s->client->tls, &p->address, &why) < 0)
		r = fail(e, OSB_ERR_PROTOCOL, "the server's endpoint is no address: %s", why.msg);
	/* A server that is reached over a socket of this machine is its own gateway. */
	if (r == 0 && s->client->server.unix_path[0])
		memcpy(p->address.unix_path, s->client->server.unix_path,
		       sizeof(p->address.unix_path));
	atomic_store(&p->users, 1);
	if (r < 0)
		place_drop(p);
	else
		*ret = p;
	return r;
}

int place_use(osb_sandbox *s, uint16_t port, const osb_call *call, struct place **ret, osb_error *e)
{
	struct place **kept = port == OSB_PORT_EXEC ? &s->exec : &s->egress;
	struct place *found = NULL;
	int r;

	(void)pthread_mutex_lock(&s->lock);
	*ret = *kept;
	if (*ret)
		(void)atomic_fetch_add(&(*ret)->users, 1);
	(void)pthread_mutex_unlock(&s->lock);
	if (*ret)
		return 0;
	r = find_place(s, port, call, &found, e);
	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&s->lock);
	if (!*kept) {
		*kept = found;
		(void)atomic_fetch_add(&found->users, 1);
	}
	(void)pthread_mutex_unlock(&s->lock);
	*ret = found;
	return 0;
}

const struct address *place_address(const struct place *p)
{
	return &p->address;
}

const osb_endpoint *place_endpoint(const struct place *p)
{
	return p->endpoint;
}
