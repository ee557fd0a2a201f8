/*
 * egress/vault_proxy.c - a sandbox's vault and proxy: made, kept, ended.
 */
#include "egress/vault_proxy.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "egress/box.h"
#include "egress/egress.h"
#include "egress/vault_int.h"
#include "net/http_pool.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "net/tls.h"
#include "net/tls_ca.h"

#define CONNECTIONS   4096	   /* of all sandboxes */
#define QUEUE_BYTES   (64 * 1024)  /* for a client that does not read */
#define BODY_STALL_MS (300 * 1000) /* uploads of slow programs */

/* ---- what all share ---- */

int vault_proxies_start(struct egress *g, struct err *e)
{
	const char *trust = g->settings->mitmproxy_upstream_trust_dir;
	struct http_limits limits = http_limits_default;
	int r;

	limits.connections = CONNECTIONS;
	limits.secret = true;
	limits.body_stall_ms = BODY_STALL_MS;
	limits.queue_high_bytes = QUEUE_BYTES;
	/* A body to look into is collected, and its copy is what leaves. */
	limits.arena_bytes += VAULT_DOCUMENT_MAX;
	g->bridges = tls_bridges_new(g->loop);
	g->pool = http_pool_new(g->loop);
	r = tls_client_new(trust[0] ? trust : NULL, &g->tls_client, e);
	if (r == 0)
		r = http_server_new(g->loop, &limits, vault_exchange, g, &g->proxy, e);
	return r;
}

void vault_proxies_stop(struct egress *g)
{
	http_server_free(take_ptr(g->proxy));
	http_pool_free(take_ptr(g->pool));
	tls_client_free(take_ptr(g->tls_client));
	tls_bridges_free(take_ptr(g->bridges));
}

/* ---- vaults that are in use ---- */

struct vault_held *vault_held_new(struct vault *v)
{
	struct vault_held *h = mem_new(struct vault_held);

	h->vault = v;
	h->refs = 1;
	return h;
}

struct vault_held *vault_held_ref(struct vault_held *h)
{
	if (h)
		h->refs++;
	return h;
}

void vault_held_unref(struct vault_held *h)
{
	if (!h || --h->refs > 0)
		return;
	vault_free(h->vault);
	free(h);
}

/* ---- life ---- */

int vault_proxy_new(struct box *b, struct vault_proxy **ret, struct err *e)
{
	struct vault_proxy *p = mem_new(struct vault_proxy);
	int r;

	p->box = b;
	list_init(&p->conns);
	list_init(&p->requests);
	r = vault_listen(p, e);
	if (r < 0) {
		vault_proxy_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void vault_proxy_free(struct vault_proxy *p)
{
	if (!p)
		return;
	loop_fd_free(p->listener);
	loop_timer_free(p->pause);
	vault_requests_end(p);
	list_each_safe (it, next, &p->conns)
		vault_conn_free(list_entry(it, struct vault_conn, link));
	vault_held_unref(p->held);
	strv_done(&p->lost);
	tls_server_free(p->tls);
	tls_ca_free(p->ca);
	free(p);
}

int vault_ca_certificate(const unsigned char secret[32], const char *id, struct buf *out,
			 struct err *e)
{
	osb_cleanup(tls_ca_freep) struct tls_ca *ca = NULL;

	if (tls_ca_new(secret, id, &ca, e) < 0)
		return e->code;
	return tls_ca_pem(ca, out, e);
}

/* ---- what others ask ---- */

bool vault_proxy_binds(const struct box *b, const char *name)
{
	const struct vault_proxy *p = b->vault;

	return p && (vault_binds(vault_of(p), view_of(name)) ||
		     vault_hosts_have(&p->lost, view_of(name)));
}

bool vault_proxy_busy(const struct box *b)
{
	const struct vault_proxy *p = b->vault;

	return p && (vault_bindings(vault_of(p)) > 0 || p->lost.len > 0);
}

int vault_proxy_accepts(const struct box *b, const struct net_policy *effective, struct err *e)
{
	return b->vault ? vault_accepts(vault_of(b->vault), effective, e) : 0;
}

bool vault_proxy_knows(const struct box *b)
{
	return b->vault->held || b->vault->broken;
}

int vault_proxy_restore(struct box *b, const struct json *v, const struct json *hosts,
			struct err *e)
{
	osb_cleanup(strv_done) struct strv lost = STRV_INIT;
	struct vault_proxy *p = b->vault;
	struct vault *made = NULL;
	struct err also = ERR_NONE;
	int r = 0;

	if (v && json_kind(v) != JSON_NULL)
		r = vault_restore(v, &made, e);
	if (!made && vault_hosts_read(hosts, &lost, &also) < 0)
		r = err_set(e, also.code, "%s", also.msg);
	p->broken = r < 0;
	vault_held_unref(p->held);
	p->held = made ? vault_held_new(made) : NULL;
	strv_done(&p->lost);
	p->lost = lost;
	lost = STRV_INIT;
	return r < 0 ? err_ctx(e, "vault") : 0;
}

void vault_proxy_write(const struct box *b, struct json_writer *w)
{
	const struct vault_proxy *p = b->vault;

	if (!p || (!p->held && p->lost.len == 0))
		return;
	json_write_key(w, "vaultHosts");
	if (!p->held) {
		json_write_array(w);
		for (size_t i = 0; i < p->lost.len; i++)
			json_write_cstr(w, p->lost.v[i]);
		json_write_array_end(w);
		return;
	}
	vault_hosts_write(p->held->vault, w);
	json_write_key(w, "vault");
	vault_write_document(p->held->vault, w);
}
