/*
 * egress/vault_api.c - /credential-vault: what clients see and change of it.
 *
 * A change is in force when the kernel leads the bound hosts here and the worker has recorded it;
 * if either fails, the vault is as it was.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "codec/url.h"
#include "egress/api_int.h"
#include "egress/box.h"
#include "egress/egress.h"
#include "egress/enforce.h"
#include "egress/leases.h"
#include "egress/settings.h"
#include "egress/vault_int.h"
#include "egress/vault_proxy.h"
#include "net/http_server.h"

#define ANSWER_MAX (8u << 20)

/* ---- answers ---- */

typedef void write_fn(const struct vault *v, struct json_writer *w);

static void reply_json(struct http_exchange *x, int status, struct buf *body)
{
	if (buf_append_char(body, '\n') < 0)
		api_reply_text(x, 500, "the answer is too large");
	else
		http_reply(x, status, "application/json", buf_view(body));
}

static void reply_with(struct http_exchange *x, int status, const struct vault *v, write_fn *fn)
{
	osb_cleanup(buf_done) struct buf body = BUF_INIT(ANSWER_MAX);
	struct json_writer w;

	json_writer_init(&w, &body);
	fn(v, &w);
	if (json_writer_end(&w) < 0)
		api_reply_text(x, 500, "the answer is too large");
	else
		reply_json(x, status, &body);
}

static void refuse(struct http_exchange *x, const struct err *e)
{
	api_reply_text(x, e->code == -ESTALE ? 409 : e->code == -EINVAL ? 400 : 500, "%s", e->msg);
}

static void reply_missing(struct http_exchange *x)
{
	api_reply_text(x, 404, "credential vault not found");
}

/* ---- reading ---- */

static void get_one(struct http_exchange *x, const struct vault *v, struct view raw, bool binding)
{
	osb_cleanup(buf_done) struct buf body = BUF_INIT(ANSWER_MAX);
	struct json_writer w;
	struct view name;
	bool found;

	json_writer_init(&w, &body);
	found = url_decode(http_arena(x), raw, URL_PATH, &name) == 0 &&
		(binding ? vault_write_binding(v, view_trim(name), &w)
			 : vault_write_credential(v, view_trim(name), &w));
	if (!found)
		api_reply_text(x, 404, "%s not found", binding ? "binding" : "credential");
	else if (json_writer_end(&w) < 0)
		api_reply_text(x, 500, "the answer is too large");
	else
		reply_json(x, 200, &body);
}

static void get(struct box *b, struct http_exchange *x, struct view path)
{
	const struct vault *v = vault_of(b->vault);

	if (view_is(path, "/_active"))
		api_reply_text(x, 403, "forbidden");
	else if (!v)
		reply_missing(x);
	else if (path.len == 0)
		reply_with(x, 200, v, vault_write_state);
	else if (view_is(path, "/credentials"))
		reply_with(x, 200, v, vault_write_credentials);
	else if (view_is(path, "/bindings"))
		reply_with(x, 200, v, vault_write_bindings);
	else if (view_starts(path, VIEW("/credentials/")))
		get_one(x, v, view_skip(path, sizeof("/credentials/") - 1), /* binding= */ false);
	else if (view_starts(path, VIEW("/bindings/")))
		get_one(x, v, view_skip(path, sizeof("/bindings/") - 1), /* binding= */ true);
	else
		api_reply_text(x, 404, "not found");
}

/* ---- whether it may be changed ---- */

/* NULL, or what is missing. */
static const char *unready(const struct box *b)
{
	if (!b->token[0])
		return "credential vault requires egress API auth token";
	if (!b->credential_proxy)
		return "credential vault requires a sandbox that was created with credentialProxy";
	if (b->settings->mitmproxy_ssl_insecure)
		return "credential vault rejects insecure upstream TLS mode";
	if (!settings_closed(b->settings))
		return "credential vault requires enforcement mode dns+nft";
	if (b->fds[RUNTIME_NET_HTTP] < 0)
		return "credential proxy is not ready";
	return NULL;
}

static bool is_in(struct view address, const char *cidrs)
{
	struct view rest = view_of(cidrs), part;
	struct net_prefix a, p;

	/* A socket of both families shows IPv4 so. */
	if (view_istarts(address, VIEW("::ffff:")) && view_has(address, '.'))
		address = view_skip(address, sizeof("::ffff:") - 1);
	if (!net_prefix_parse(address, &a))
		return false;
	while (view_split(&rest, ',', &part))
		if (net_prefix_parse(view_trim(part), &p) && net_prefix_has(&p, a.v6, a.bytes))
			return true;
	return false;
}

/* Over TLS as far as anybody knows who may say so, or from this machine. */
static bool is_safe(const struct box *b, const struct http_exchange *x)
{
	struct view peer = http_peer(x), proto = VIEW_NONE, from = VIEW_NONE;
	bool ours = peer.len == 0; /* the worker's socket */

	if (!b->settings->credential_vault_require_tls)
		return true;
	(void)http_header(x, "X-Forwarded-Proto", &proto);
	if (ours) {
		(void)http_header(x, "X-Forwarded-For", &from);
		while (view_has(from, ','))
			from = view_skip(from, view_find(from, ',') + 1);
		return proto.len == 0 || view_iis(proto, "https") ||
		       is_in(view_trim(from), "127.0.0.0/8,::1");
	}
	if (is_in(peer, "127.0.0.0/8,::1"))
		return true;
	return view_iis(proto, "https") &&
	       is_in(peer, b->settings->credential_vault_trusted_proxy_cidrs);
}

/* ---- changing ---- */

struct change {
	struct box *box;
	struct http_exchange *x; /* NULL once the client has gone */
	struct vault_held *old;	 /* what holds again if the change fails */
	struct strv lost;
	bool broken;
	int status; /* of the answer */
};

static void on_gone(struct http_exchange *x, void *arg)
{
	(void)x;
	((struct change *)arg)->x = NULL;
}

/* The kernel leads to the proxy what the vault is about. */
static int divert(struct box *b, struct err *e)
{
	return leases_divert(b, e) < 0 ? e->code : enforce_policy(b, e);
}

static void answer(struct http_exchange *x, const struct change *c, const struct err *e)
{
	http_on_gone(x, NULL, NULL);
	if (e)
		api_reply_text(x, 500, "the vault is as it was: %s", e->msg);
	else if (c->status == 204)
		http_reply(x, 204, NULL, VIEW_NONE);
	else
		reply_with(x, c->status, vault_of(c->box->vault), vault_write_state);
}

static void on_saved(void *arg, const struct err *e)
{
	struct change *c = arg;
	struct vault_proxy *p = c->box->vault;
	struct err ignored = ERR_NONE;

	if (e && p) {
		vault_held_unref(p->held);
		p->held = take_ptr(c->old);
		p->lost = c->lost;
		c->lost = STRV_INIT;
		p->broken = c->broken;
		/* It held before, so nothing is open that was not. */
		(void)!divert(c->box, &ignored);
	}
	if (p)
		p->changing = false;
	if (c->x)
		answer(c->x, c, e);
	vault_held_unref(c->old);
	strv_done(&c->lost);
	free(c);
}

static void change(struct box *b, struct http_exchange *x, struct vault *next, int status)
{
	struct change *c = mem_new(struct change);
	struct vault_proxy *p = b->vault;
	struct err e = ERR_NONE;

	c->box = b;
	c->x = x;
	c->old = p->held;
	c->status = status;
	c->lost = p->lost;
	c->broken = p->broken;
	p->held = next ? vault_held_new(next) : NULL;
	p->lost = STRV_INIT;
	p->broken = false;
	p->changing = true;
	http_on_gone(x, on_gone, c);
	if (divert(b, &e) < 0)
		on_saved(c, &e);
	else
		box_save(b, on_saved, c);
}

static enum vault_flags flags_of(const struct box *b)
{
	return b->settings->credential_vault_require_scoped_match ? VAULT_SCOPED : 0;
}

/* The box is looked up again: it may have gone while the body came. */
struct writer {
	struct egress *egress;
	char id[sizeof(((struct box *)NULL)->id)];
};

static struct box *box_of(const struct writer *w)
{
	return map_get(w->egress->boxes, view_of(w->id));
}

static void on_document(struct http_exchange *x, struct view body, void *arg)
{
	struct box *b = box_of(arg);
	osb_cleanup(json_freep) struct json *doc = NULL;
	bool creates = view_is(http_head(x)->method, "POST");
	struct vault *next = NULL;
	struct err e = ERR_NONE;
	int r;

	if (!b || !b->vault) {
		api_reply_text(x, 404, "there is no such sandbox, or it has no policy");
		return;
	}
	r = json_parse(body, JSON_FIRST_VALUE, &doc, &e);
	if (r < 0) {
		/* Not why: that would quote what stands there, which may be a secret. */
		api_reply_text(x, 400, "invalid credential vault request: it is not JSON");
		return;
	}
	if (b->vault->changing) {
		api_reply_text(x, 409, "another change of the credential vault is under way");
		return;
	}
	if (creates && b->vault->held) {
		api_reply_text(x, 409, "credential vault already exists");
		return;
	}
	if (!creates && !b->vault->held) {
		reply_missing(x);
		return;
	}
	r = creates ? vault_new(doc, &b->effective, flags_of(b), &next, &e)
		    : vault_patch(vault_of(b->vault), doc, &b->effective, flags_of(b), &next, &e);
	if (r < 0)
		refuse(x, &e);
	else
		change(b, x, next, creates ? 201 : 200);
}

static void write_vault(struct box *b, struct http_exchange *x)
{
	const char *missing = unready(b);
	struct writer *w;

	if (missing) {
		api_reply_text(x, 412, "%s", missing);
		return;
	}
	if (!is_safe(b, x)) {
		api_reply_text(x, 426, "credential vault writes require TLS or loopback transport");
		return;
	}
	if (view_is(http_head(x)->method, "DELETE")) {
		if (!b->vault->held && !b->vault->broken && b->vault->lost.len == 0)
			reply_missing(x);
		else if (b->vault->changing)
			api_reply_text(x, 409,
				       "another change of the credential vault is under way");
		else
			change(b, x, /* next= */ NULL, 204);
		return;
	}
	w = arena_alloc(http_arena(x), sizeof(*w));
	if (!w) {
		api_reply_text(x, 503, "out of memory for this request");
		return;
	}
	w->egress = b->egress;
	memcpy(w->id, b->id, sizeof(w->id));
	http_body_collect(x, VAULT_DOCUMENT_MAX, on_document, w);
}

void vault_proxy_api(struct box *b, struct http_exchange *x, const char *path)
{
	if (view_is(http_head(x)->method, "GET"))
		get(b, x, view_of(path));
	else if (path[0] == '\0')
		write_vault(b, x);
	else
		api_reply_text(x, 404, "not found");
}
