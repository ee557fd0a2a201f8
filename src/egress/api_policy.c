/*
 * egress/api_policy.c - /policy: what the user's policy is, and how it becomes another one.
 *
 * Changes of one box are made one after the other, in the order in which their bodies were
 * complete: each sees what the one before has made.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "egress/api_int.h"
#include "egress/box.h"
#include "egress/box_change.h"
#include "egress/decisions.h"
#include "egress/egress.h"
#include "egress/settings.h"
#include "egress/vault_proxy.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "net/router.h"

#define BODY_MAX      (1u << 20)
#define BODIES_MAX    (64u << 20)
#define ANSWER_MAX    (256u << 20)
#define RESET_REASON  "policy reset to default deny-all"
#define NOTHING_FOUND "no matching targets found"

struct change;

/* Makes the policy that shall hold of the one that does.  0, 1 = it is the same, or -errno. */
typedef int make_fn(struct change *c, const struct box *b, struct net_policy *p, struct err *e);

struct change {
	struct list link;
	struct api *api;	 /* NULL: it has ended */
	struct http_exchange *x; /* NULL: the client has gone */
	char id[sizeof(((struct box *)0)->id)];
	make_fn *make;
	struct buf body;
	bool complete, running, reset;
	enum net_mode old_mode, new_mode;
	const char *mode, *reason; /* for the answer */
};

/* ---- answers ---- */

static void begin_status(struct json_writer *w, struct buf *out, const char *mode)
{
	json_writer_init(w, out);
	json_write_object(w);
	json_put_cstr(w, "status", "ok");
	json_put_cstr(w, "mode", mode);
}

static void end_status(struct json_writer *w, struct http_exchange *x, struct buf *out)
{
	json_write_object_end(w);
	if (json_writer_end(w) < 0)
		api_reply_text(x, 500, "the policy is too large to be shown");
	else
		api_reply_json(x, out);
}

static void get_policy(struct http_exchange *x, void *app)
{
	const struct api_target *t = app;
	osb_cleanup(buf_done) struct buf out = BUF_INIT(ANSWER_MAX);
	struct json_writer w;

	begin_status(&w, &out, net_policy_mode(&t->box->policy));
	json_put_cstr(&w, "enforcementMode", t->box->egress->settings->mode);
	json_write_key(&w, "policy");
	net_policy_write(&t->box->policy, &w);
	end_status(&w, x, &out);
}

/* Before it is answered: nothing of it is ours afterwards. */
static struct http_exchange *let_go(struct change *c)
{
	if (c->x)
		http_on_gone(c->x, NULL, NULL);
	return take_ptr(c->x);
}

static void reply_changed(struct change *c)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(4096);
	struct http_exchange *x = let_go(c);
	struct json_writer w;

	if (!x)
		return;
	begin_status(&w, &out, c->mode);
	if (!c->reset)
		json_put_cstr(&w, "enforcementMode", c->api->egress->settings->mode);
	if (c->reason)
		json_put_cstr(&w, "reason", c->reason);
	end_status(&w, x, &out);
}

static int status_of(int code)
{
	return code == -E2BIG ? 413 : code == -EINVAL ? 400 : 500;
}

/* ---- a change's life ---- */

static void change_free(struct change *c)
{
	(void)let_go(c);
	if (c->api)
		c->api->body_bytes -= c->body.len;
	list_remove(&c->link);
	buf_done(&c->body);
	free(c);
}

/* It was made, or cannot be; the answer was given. */
static void change_over(struct change *c)
{
	struct api *a = c->api;

	if (a) {
		map_remove(a->busy, view_of(c->id));
		loop_task_post(a->next);
	}
	change_free(c);
}

static void refuse(struct change *c, int status, const char *what, const struct err *e)
{
	struct http_exchange *x = let_go(c);

	log_line(LOG_WARN, "policy not changed", LOG_S("box", c->id), LOG_S("err", e->msg));
	if (x)
		api_reply_text(x, status, "%s%s", what, e->msg);
	change_over(c);
}

static void client_gone(struct http_exchange *x, void *arg)
{
	struct change *c = arg;

	(void)x;
	c->x = NULL;
	/* What has begun is brought to its end, what has not is nobody's wish any more. */
	if (!c->running)
		change_free(c);
}

static void changed(void *arg, const struct err *e)
{
	struct change *c = arg;
	struct box *b = c->api ? api_box(c->api, c->id) : NULL;

	if (e) {
		refuse(c, 500, "failed to apply the policy: ", e);
		return;
	}
	/* What is learned begins with the mode. */
	if (b && c->new_mode == NET_LEARN && c->old_mode != NET_LEARN)
		decisions_forget_learned(b->decisions);
	log_line(LOG_INFO, "policy changed", LOG_S("box", c->id), LOG_S("mode", c->mode));
	if (c->api)
		reply_changed(c);
	change_over(c);
}

/* Bound hosts stay allowed as long as they are bound. */
static int check_vault(const struct box *b, const struct net_policy *p, struct err *e)
{
	osb_cleanup(net_policy_done) struct net_policy effective = NET_POLICY_NONE;

	if (!vault_proxy_busy(b))
		return 0;
	box_merge(b, p, &effective);
	return vault_proxy_accepts(b, &effective, e);
}

static void begin(struct change *c)
{
	struct box *b = api_box(c->api, c->id);
	osb_cleanup(net_policy_done) struct net_policy p = NET_POLICY_NONE;
	struct err e = ERR_NONE;
	int r;

	c->running = true;
	map_put(c->api->busy, view_of(c->id), c);
	if (!b) {
		err_set(&e, -ENOENT, "the sandbox has gone");
		refuse(c, 404, "", &e);
		return;
	}
	r = c->make(c, b, &p, &e);
	c->mode = net_policy_mode(&p);
	c->old_mode = b->policy.mode;
	c->new_mode = p.mode;
	if (r < 0) {
		refuse(c, status_of(r), "", &e);
	} else if (r > 0) {
		reply_changed(c);
		change_over(c);
	} else if (check_vault(b, &p, &e) < 0) {
		refuse(c, 400, "credential vault policy validation: ", &e);
	} else {
		struct net_policy taken = p;

		p = NET_POLICY_NONE;
		box_change_policy(b, &taken, changed, c);
	}
}

static struct change *find_next(struct api *a)
{
	list_each_safe (it, tmp, &a->changes) {
		struct change *c = list_entry(it, struct change, link);

		if (c->complete && !c->running && !map_get(a->busy, view_of(c->id)))
			return c;
	}
	return NULL;
}

void api_policy_begin_next(void *arg)
{
	struct change *c;

	while ((c = find_next(arg)))
		begin(c);
}

void api_policy_end(struct api *a)
{
	list_each_safe (it, tmp, &a->changes) {
		struct change *c = list_entry(it, struct change, link);

		(void)let_go(c);
		c->api = NULL;
		list_remove(&c->link);
		if (!c->running)
			change_free(c);
	}
}

/* ---- bodies ---- */

static void take_body(struct http_exchange *x, struct view piece, void *arg)
{
	struct change *c = arg;
	struct api *a = c->api;

	if (piece.len == 0) {
		c->complete = true;
		/* Behind those that were complete before. */
		list_remove(&c->link);
		list_push_back(&a->changes, &c->link);
		loop_task_post(a->next);
		return;
	}
	if (a->body_bytes + piece.len > BODIES_MAX) {
		change_free(c);
		api_reply_text(x, 503, "too many changes at once");
	} else if (buf_append_view(&c->body, piece) < 0) {
		change_free(c);
		api_reply_text(x, 413, "the body is larger than %u bytes", BODY_MAX);
	} else {
		a->body_bytes += piece.len;
	}
}

static void begin_change(struct http_exchange *x, const struct api_target *t, make_fn *make)
{
	struct change *c = mem_new(struct change);

	memcpy(c->id, t->box->id, sizeof(c->id));
	c->api = t->api;
	c->x = x;
	c->make = make;
	buf_init(&c->body, BODY_MAX);
	list_push_back(&t->api->changes, &c->link);
	http_on_gone(x, client_gone, c);
	http_body_stream(x, take_body, c);
}

static bool is_blank(struct view text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.p[i] != ' ' && (text.p[i] < '\t' || text.p[i] > '\r'))
			return false;
	return true;
}

/* The array that a PATCH and a DELETE have; `what` is what they are about. */
static int read_array(const struct change *c, const char *what, struct json **ret, struct err *e)
{
	osb_cleanup(json_freep) struct json *v = NULL;

	if (is_blank(buf_view(&c->body)))
		return err_set(e, -EINVAL, "empty body");
	if (json_parse(buf_view(&c->body), 0, &v, e) < 0)
		return err_ctx(e, "invalid %s", what);
	if (json_kind(v) != JSON_ARRAY && json_kind(v) != JSON_NULL)
		return err_set(e, -EINVAL, "invalid %s: an array is needed, not %s", what,
			       json_kind_name(json_kind(v)));
	if (json_len(v) == 0)
		return err_set(e, -EINVAL, "invalid %s: empty array", what);
	*ret = take_ptr(v);
	return 0;
}

static void copy_policy(const struct net_policy *from, struct net_policy *ret)
{
	*ret = (struct net_policy){.mode = from->mode, .default_allow = from->default_allow};
	net_policy_append(ret, from);
}

static size_t max_rules(const struct box *b)
{
	return b->egress->settings->max_rules;
}

/* ---- POST, PUT ---- */

static int make_replaced(struct change *c, const struct box *b, struct net_policy *p, struct err *e)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	int r;

	if (is_blank(buf_view(&c->body))) {
		c->reset = true;
		c->reason = RESET_REASON;
		return 0;
	}
	r = json_parse(buf_view(&c->body), 0, &v, e);
	if (r == 0)
		r = net_policy_from_json(v, max_rules(b), p, e);
	return r < 0 ? err_ctx(e, "invalid policy") : 0;
}

static void put_policy(struct http_exchange *x, void *app)
{
	begin_change(x, app, make_replaced);
}

/* ---- PATCH ---- */

static int make_patched(struct change *c, const struct box *b, struct net_policy *p, struct err *e)
{
	osb_cleanup(json_freep) struct json *rules = NULL;
	int r = read_array(c, "patch rules", &rules, e);

	if (r < 0)
		return r;
	copy_policy(&b->policy, p);
	r = net_policy_merge(p, rules, max_rules(b), e);
	return r < 0 ? err_ctx(e, "invalid patch rules") : 0;
}

static void patch_policy(struct http_exchange *x, void *app)
{
	begin_change(x, app, make_patched);
}

/* ---- DELETE ---- */

static int make_shortened(struct change *c, const struct box *b, struct net_policy *p,
			  struct err *e)
{
	osb_cleanup(json_freep) struct json *targets = NULL;
	size_t n;
	int r = read_array(c, "delete targets", &targets, e);

	if (r < 0)
		return r;
	copy_policy(&b->policy, p);
	if (net_policy_remove(p, targets, &n, e) < 0)
		return err_ctx(e, "invalid delete targets");
	if (n == 0)
		c->reason = NOTHING_FOUND;
	return n == 0;
}

static void delete_rules(struct http_exchange *x, void *app)
{
	begin_change(x, app, make_shortened);
}

const struct route api_policy_routes[] = {
	{"GET", "/policy", get_policy, 0},	{"POST", "/policy", put_policy, 0},
	{"PUT", "/policy", put_policy, 0},	{"PATCH", "/policy", patch_policy, 0},
	{"DELETE", "/policy", delete_rules, 0}, {NULL, NULL, NULL, 0},
};
