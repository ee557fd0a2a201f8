/*
 * image/registry_auth.c - answers to challenges: a password, or a token bought with one.
 *
 * Credentials belong to one endpoint.  They go to that endpoint, or to the token server that it
 * names; a token goes to the endpoint that asked for it, and is asked for with the rights that this
 * job needs, whatever the challenge says.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "codec/base64.h"
#include "codec/json.h"
#include "codec/url.h"
#include "codec/www_authenticate.h"
#include "image/registry_int.h"

#define URL_MAX	       8192
#define TOKEN_BODY_MAX (256 * 1024)
#define TOKEN_MAX      (64 * 1024)
#define TOKEN_WAIT_S   60
#define CHALLENGE_MAX  (64 * 1024)

static void set_authorization(struct endpoint *ep, char *value_taken)
{
	free(ep->authorization);
	ep->authorization = value_taken;
	ep->auth_serial++;
}

/* "Basic dXNlcjpwYXNz", on the heap. */
static char *basic(const struct docker_auth *auth)
{
	osb_cleanup(mem_freep) char *plain = mem_printf(
		VIEW_FMT ":" VIEW_FMT, VIEW_ARG(auth->username), VIEW_ARG(auth->password));
	size_t n = strlen(plain);
	osb_cleanup(mem_freep) char *text = mem_alloc(BASE64_LEN(n) + 1);

	base64_format(plain, n, text);
	return mem_printf("Basic %s", text);
}

/* Why we could not do better. */
static int blame_helper(const struct endpoint *ep, struct err *e)
{
	return err_ctx(e,
		       "config.json names the credential helper '%.*s', which is not supported "
		       "(put the credentials into 'auths')",
		       (int)MIN(ep->auth.helper.len, (size_t)40), ep->auth.helper.p);
}

/* ---- tokens ---- */

struct token_request {
	struct buf url, form; /* a form is sent when there is one */
	struct buf answer;
	size_t sent;
};

static int begin(void *arg, struct call *c, struct err *e)
{
	struct token_request *t = arg;

	buf_clear(&t->answer);
	t->sent = 0;
	return 0;
}

static ssize_t send_form(void *arg, char *p, size_t n)
{
	struct token_request *t = arg;
	struct view rest = view_first(view_skip(buf_view(&t->form), t->sent), n);

	memcpy(p, rest.p, rest.len);
	t->sent += rest.len;
	return (ssize_t)rest.len;
}

static int keep_answer(void *arg, const struct transfer *t, struct view bytes, struct err *e)
{
	struct token_request *rq = arg;

	if (buf_append_view(&rq->answer, bytes) < 0)
		return err_set(e, -EBADMSG, "the token server's answer is too large");
	return 0;
}

static int add(struct buf *out, const char *name, struct view value)
{
	char separator = '&';
	int r = 0;

	if (view_starts(buf_view(out), VIEW("http")) && !view_has(buf_view(out), '?'))
		separator = '?';
	if (out->len > 0)
		r = buf_append_char(out, separator);
	if (r == 0)
		r = buf_printf(out, "%s=", name);
	return r == 0 ? url_encode(out, value, false) : r;
}

/* What this job needs, and no more. */
static int add_scope(const struct registry *r, struct buf *out)
{
	osb_cleanup(buf_done) struct buf scope = BUF_INIT(2 * URL_MAX);
	bool push = r->o->way == REGISTRY_PUSH;
	int failed = buf_printf(&scope, "repository:%s:%s", r->o->ref.repository,
				push ? "pull,push" : "pull");

	if (failed == 0 && push && r->o->mount_from.len > 0)
		failed = buf_printf(&scope, " repository:" VIEW_FMT ":pull",
				    VIEW_ARG(r->o->mount_from));
	return failed == 0 ? add(out, "scope", buf_view(&scope)) : failed;
}

/* A token for a long time buys one for a short time; anybody else asks with a name or without. */
static int write_request(const struct registry *r, const struct endpoint *ep,
			 const struct www_challenge *c, struct token_request *t)
{
	bool refresh = ep->auth.identity_token.len > 0;
	struct buf *to = refresh ? &t->form : &t->url;
	int failed = buf_append_view(&t->url, c->realm);

	if (failed == 0 && refresh)
		failed = add(to, "grant_type", VIEW("refresh_token"));
	if (failed == 0 && refresh)
		failed = add(to, "client_id", VIEW("opensandbox"));
	if (failed == 0 && refresh)
		failed = add(to, "refresh_token", ep->auth.identity_token);
	if (failed == 0 && !refresh && ep->auth.username.len > 0)
		failed = add(to, "account", ep->auth.username);
	if (failed == 0 && c->service.len > 0)
		failed = add(to, "service", c->service);
	return failed == 0 ? add_scope(r, to) : failed;
}

/* Only what may stand in a header as one word. */
static bool token_valid(struct view token)
{
	for (size_t i = 0; i < token.len; i++)
		if (token.p[i] <= 0x20 || token.p[i] >= 0x7f)
			return false;
	return token.len > 0 && token.len <= TOKEN_MAX;
}

static int read_token(struct view text, char **ret, struct err *e)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	struct err ignored = ERR_NONE;
	struct view token;

	if (json_parse(text, 0, &v, &ignored) < 0 ||
	    (!json_str(json_get(v, "token"), &token) &&
	     !json_str(json_get(v, "access_token"), &token)) ||
	    !token_valid(token))
		return err_set(e, -EBADMSG, "the token server sent no token");
	*ret = mem_printf("Bearer " VIEW_FMT, VIEW_ARG(token));
	return 0;
}

static int ask(struct registry *r, const struct endpoint *ep, struct token_request *t, char **ret,
	       struct err *e)
{
	struct call c;
	int failed;

	call_init(&c, r, t->form.len > 0 ? "POST" : "GET", mem_strdup(buf_str(&t->url)));
	c.flags = CALL_TOKEN;
	c.before = begin;
	c.sink = keep_answer;
	c.arg = t;
	c.total_s = TOKEN_WAIT_S;
	if (t->form.len > 0) {
		c.source = send_form;
		c.source_bytes = t->form.len;
		strv_add(&c.headers, "Content-Type: application/x-www-form-urlencoded");
	} else if (ep->auth.username.len > 0) {
		osb_cleanup(mem_freep) char *value = basic(&ep->auth);

		strv_take(&c.headers, mem_printf("Authorization: %s", value));
	}
	failed = call_run(&c, e);
	if (failed >= 0)
		failed = read_token(buf_view(&t->answer), ret, e);
	call_done(&c);
	return failed;
}

static int get_token(struct registry *r, const struct endpoint *ep, const struct www_challenge *c,
		     char **ret, struct err *e)
{
	struct token_request t = {
		.url = BUF_INIT(URL_MAX),
		.form = BUF_INIT(URL_MAX + TOKEN_MAX),
		.answer = BUF_INIT(TOKEN_BODY_MAX),
	};
	struct registry_origin realm;
	int failed = 0;

	if (view_has(c->realm, '\0') || write_request(r, ep, c, &t) < 0)
		failed = err_set(e, -EBADMSG, "the challenge is too long");
	if (failed == 0)
		failed = registry_check_way(r, &ep->origin, buf_str(&t.url), &realm, e);
	if (failed == 0)
		failed = ask(r, ep, &t, ret, e);
	buf_done(&t.url);
	buf_done(&t.form);
	buf_done(&t.answer);
	return failed < 0 ? err_ctx(e, "token for %s", ep->host) : 0;
}

int registry_authorize(struct registry *r, struct endpoint *ep, const struct transfer *challenged,
		       struct err *e)
{
	struct view header = buf_view(&challenged->head.challenges);
	struct www_challenge c;
	struct arena a;
	char *value = NULL;
	int failed = 0;

	arena_init(&a, CHALLENGE_MAX);
	if (www_authenticate_find(&a, header, "Bearer", &c)) {
		failed = get_token(r, ep, &c, &value, e);
		if (failed == -EACCES && ep->auth.helper.len > 0)
			failed = blame_helper(ep, e);
	} else if (www_authenticate_find(&a, header, "Basic", &c) && ep->auth.username.len > 0 &&
		   !ep->authorization) {
		value = basic(&ep->auth);
	} else {
		failed = registry_answer_error(challenged, ep->host, e);
		if (ep->auth.helper.len > 0)
			failed = blame_helper(ep, e);
	}
	arena_done(&a);
	if (failed == 0)
		set_authorization(ep, value);
	return failed;
}
