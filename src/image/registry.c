/*
 * image/registry.c - which endpoints a reference has, what they may be told, and where they may
 * send us.
 */
#include "image/registry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hex.h"
#include "base/mem.h"
#include "codec/json.h"
#include "codec/sha256.h"
#include "image/registry_int.h"

#define ARENA_MAX    (64u << 20)
#define HUB_HOST     "registry-1.docker.io"
#define PROBE_WAIT_S 10
#define GET_WAIT_S   600

const struct registry_limits registry_default_limits = {
	.blob_bytes = UINT64_C(32) << 30,
	.total_bytes = UINT64_C(128) << 30,
	.stall_s = 30,
	.attempts = 5,
	.backoff_ms = 500,
	.parallel = 4,
};

/* ---- rules ---- */

bool registry_is_insecure(const struct registry *r, const char *host)
{
	const struct json *list = r->o->insecure;
	struct view one;

	for (size_t i = 0; i < json_len(list); i++)
		if (json_str(json_at(list, i), &one) && view_ieq(one, view_of(host)))
			return true;
	return false;
}

bool registry_plain_allowed(const struct registry *r, const char *host)
{
	if (image_ref_host_is_loopback(view_of(host)) || registry_is_insecure(r, host))
		return true;
	/* A mirror was written with its scheme by whoever runs this machine. */
	for (size_t i = 0; i < r->endpoints_n; i++)
		if (r->endpoints[i].mirror && !r->endpoints[i].origin.tls &&
		    strcmp(r->endpoints[i].host, host) == 0)
			return true;
	return false;
}

/* In any of the ways in which somebody might write it. */
static bool is_this_machine(struct view host)
{
	struct view name = view_first(host, view_find(host, ':'));

	if (view_ends(name, VIEW(".")))
		name.len--;
	return image_ref_host_is_loopback(host) || view_starts(name, VIEW("0.")) ||
	       view_is(name, "localhost") || view_ends(name, VIEW(".localhost")) ||
	       view_starts(host, VIEW("[::]")) || view_starts(host, VIEW("[::ffff:"));
}

int registry_check_way(const struct registry *r, const struct registry_origin *from,
		       const char *url, struct registry_origin *ret, struct err *e)
{
	int failed = registry_origin_of(url, ret, e);

	if (failed < 0)
		return failed;
	if (!ret->tls && from->tls)
		return err_set(e, -EBADMSG, "from HTTPS to plain HTTP at %.100s, which is refused",
			       ret->host);
	if (!ret->tls && !registry_plain_allowed(r, ret->host))
		return err_set(e, -EBADMSG,
			       "to plain HTTP at %.100s, which is allowed for this machine and "
			       "configured registries alone",
			       ret->host);
	if (is_this_machine(view_of(ret->host)) && !is_this_machine(view_of(from->host)))
		return err_set(e, -EBADMSG, "from %.100s to this machine, which is refused",
			       from->host);
	return 0;
}

/* ---- endpoints ---- */

char *registry_endpoint_url(const struct endpoint *ep, const char *path)
{
	return mem_printf("%s://%s%s", ep->tls ? "https" : "http", ep->host, path);
}

static int set_scheme(struct endpoint *ep, bool tls, struct err *e)
{
	osb_cleanup(mem_freep) char *url = NULL;

	ep->tls = tls;
	url = registry_endpoint_url(ep, "/");
	return registry_origin_of(url, &ep->origin, e);
}

static int find_credentials(struct registry *r, struct endpoint *ep, const char *name,
			    struct err *e)
{
	const struct registry_options *o = r->o;

	if (!ep->mirror && o->username.len > 0) {
		ep->auth.username = o->username;
		ep->auth.password = o->password;
		return 0;
	}
	if (o->docker_config.len == 0)
		return 0;
	return docker_config_find(o->docker_config, view_of(name), &r->arena, &ep->auth, e);
}

/* "https://mirror:5000": nothing but a scheme and a host. */
static int add_mirror(struct registry *r, struct view url, struct err *e)
{
	struct endpoint *ep = &r->endpoints[r->endpoints_n];
	bool tls = view_starts(url, VIEW("https://"));
	struct view host = view_skip(url, tls ? 8 : 7);
	int failed;

	if (!tls && !view_starts(url, VIEW("http://")))
		return err_set(e, -EINVAL, "a mirror must begin with http:// or https://");
	if (view_ends(host, VIEW("/")))
		host.len--;
	if (host.len == 0 || host.len > IMAGE_REF_NAME_MAX || view_has(host, '/') ||
	    view_has(host, '@') || view_has(host, '?') || view_has(host, '\0'))
		return err_set(e, -EINVAL, "a mirror is a host with or without a port, no more");
	if (r->endpoints_n == REGISTRY_MIRRORS_MAX)
		return err_set(e, -EINVAL, "there are more than %d mirrors", REGISTRY_MIRRORS_MAX);
	memcpy(ep->host, host.p, host.len);
	ep->host[host.len] = '\0';
	ep->mirror = true;
	ep->probed = true;
	failed = set_scheme(ep, tls, e);
	if (failed < 0)
		return failed;
	r->endpoints_n++;
	failed = find_credentials(r, ep, ep->host, e);
	return failed < 0 ? failed : 0;
}

static int add_mirrors(struct registry *r, struct err *e)
{
	const struct json *list = json_get(r->o->mirrors, r->o->ref.registry);
	struct view url;

	for (size_t i = 0; i < json_len(list); i++) {
		if (!json_str(json_at(list, i), &url))
			return err_set(e, -EINVAL, "mirrors must be strings");
		if (add_mirror(r, url, e) < 0)
			return err_ctx(e, "mirror '%.100s'", url.p);
	}
	return 0;
}

static int add_registry(struct registry *r, struct err *e)
{
	struct endpoint *ep = &r->endpoints[r->endpoints_n++];
	const char *name = r->o->ref.registry;
	int failed;

	if (strcmp(name, IMAGE_REF_HUB) == 0)
		memcpy(ep->host, HUB_HOST, sizeof(HUB_HOST));
	else
		memcpy(ep->host, name, strlen(name) + 1);
	ep->probed = !registry_plain_allowed(r, ep->host);
	failed = set_scheme(ep, true, e);
	if (failed == 0)
		failed = find_credentials(r, ep, name, e);
	return failed < 0 ? failed : 0;
}

int registry_new(const struct registry_options *o, struct registry **ret, struct err *e)
{
	osb_cleanup(registry_freep) struct registry *r = mem_new(struct registry);
	int failed = 0;

	r->o = o;
	r->transfers = transfers_new();
	arena_init(&r->arena, ARENA_MAX);
	/* What is pushed goes to the registry itself. */
	if (o->way == REGISTRY_PULL)
		failed = add_mirrors(r, e);
	if (failed == 0)
		failed = add_registry(r, e);
	if (failed < 0)
		return failed;
	*ret = take_ptr(r);
	return 0;
}

void registry_free(struct registry *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < ARRAY_LEN(r->endpoints); i++)
		free(r->endpoints[i].authorization);
	transfers_free(r->transfers);
	arena_done(&r->arena);
	free(r);
}

/* ---- TLS or not ---- */

/* Does it answer as a registry would?  Servers tell those who do not speak TLS so with a 400. */
static bool answers(struct registry *r, const struct endpoint *ep)
{
	osb_cleanup(mem_freep) char *url = registry_endpoint_url(ep, "/v2/");
	struct transfer_request rq = {
		.method = "GET",
		.url = url,
		.stall_s = PROBE_WAIT_S,
		.total_s = PROBE_WAIT_S,
	};
	struct err ignored = ERR_NONE;
	struct transfer *t = NULL;
	bool good;

	if (image_ref_host_is_loopback(view_of(ep->host)))
		rq.flags |= TRANSFER_NO_PROXY;
	if (registry_is_insecure(r, ep->host))
		rq.flags |= TRANSFER_NO_VERIFY;
	if (transfer_start(r->transfers, &rq, &t, &ignored) < 0)
		return false;
	(void)transfers_wait(r->transfers, t, UINT64_MAX);
	good = t->failed.code == 0 && t->head.status != 400;
	transfer_free(t);
	return good;
}

/*
 * On this machine plain HTTP comes first, as nobody listens on the way; elsewhere TLS does.  No
 * secret is sent.
 */
void registry_probe(struct registry *r, struct endpoint *ep)
{
	bool tls = !image_ref_host_is_loopback(view_of(ep->host));
	struct err ignored = ERR_NONE;

	if (ep->probed)
		return;
	ep->probed = true;
	(void)set_scheme(ep, tls, &ignored);
	if (answers(r, ep))
		return;
	(void)set_scheme(ep, !tls, &ignored);
	if (answers(r, ep))
		return;
	/* Neither: the first shall say why, and the next call may find out. */
	(void)set_scheme(ep, tls, &ignored);
	ep->probed = false;
}

/* ---- small documents ---- */

static int begin(void *arg, struct call *c, struct err *e)
{
	buf_clear(&((struct registry_document *)arg)->body);
	return 0;
}

static int keep(void *arg, const struct transfer *t, struct view bytes, struct err *e)
{
	struct buf *body = &((struct registry_document *)arg)->body;

	if (buf_append_view(body, bytes) < 0)
		return err_set(e, -EFBIG, "the document is larger than %zu bytes", body->max);
	return 0;
}

static int check_digest(const struct transfer *t, const char *wanted, struct registry_document *doc,
			struct err *e)
{
	unsigned char raw[SHA256_BYTES];

	memcpy(doc->content_type, t->head.content_type, sizeof(doc->content_type));
	sha256_of(buf_view(&doc->body), raw);
	memcpy(doc->digest, "sha256:", 7);
	hex_format(raw, sizeof(raw), doc->digest + 7);
	if (wanted && strcmp(wanted, doc->digest) != 0)
		return err_set(e, -EBADMSG, "%.19s... has another digest, %.19s...", wanted,
			       doc->digest);
	if (!wanted && strncmp(t->head.digest, "sha256:", 7) == 0 &&
	    strcmp(t->head.digest, doc->digest) != 0)
		return err_set(e, -EBADMSG, "the registry says %.19s..., the document is %.19s...",
			       t->head.digest, doc->digest);
	return 0;
}

int registry_get(struct registry *r, const char *path, const char *accept, const char *wanted,
		 struct registry_document *ret, struct err *e)
{
	struct call c;
	int failed;

	call_init(&c, r, "GET", mem_strdup(path));
	c.before = begin;
	c.sink = keep;
	c.arg = ret;
	c.total_s = GET_WAIT_S;
	if (accept)
		strv_take(&c.headers, mem_printf("Accept: %s", accept));
	do {
		failed = call_run(&c, e);
		if (failed >= 0)
			failed = check_digest(c.t, wanted, ret, e);
	} while (failed < 0 && call_elsewhere(&c));
	if (failed >= 0)
		r->first = c.endpoint;
	call_done(&c);
	return failed;
}
