/*
 * image/registry_call.c - one thing asked: challenges, redirects, tries, other endpoints.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/rand.h"
#include "image/registry_int.h"

#define CHALLENGES_MAX	2     /* a token may have run out; twice in a row means no */
#define BACKOFF_MAX_MS	20000 /* between two tries */
#define RETRY_AFTER_MAX 60    /* seconds: who wants us to wait longer is not to be had now */
#define SEND_PATIENCE	10    /* stalls: what was sent is looked at before it is answered */
#define MIRROR_FAILURES 2     /* there are others to ask */

static struct endpoint *endpoint_of(struct call *c)
{
	return &c->r->endpoints[c->endpoint];
}

void call_init(struct call *c, struct registry *r, const char *method, char *path_taken)
{
	*c = (struct call){.r = r, .method = method, .path = path_taken, .endpoint = r->first};
}

void call_done(struct call *c)
{
	transfer_free(c->t);
	c->t = NULL;
	strv_done(&c->headers);
	free(c->path);
	free(c->url);
	c->path = c->url = NULL;
}

void call_gained(struct call *c)
{
	c->failures = 0;
	c->challenges = 0;
}

/* From the beginning: signed addresses that we were sent to may not be good any more. */
void call_restart(struct call *c)
{
	free(c->url);
	c->url = NULL;
	c->foreign = false;
	c->redirects = 0;
}

bool call_elsewhere(struct call *c)
{
	if (c->flags & (CALL_TOKEN | CALL_ONCE) || ++c->tried >= c->r->endpoints_n)
		return false;
	c->endpoint = (c->endpoint + 1) % c->r->endpoints_n;
	c->failures = c->challenges = 0;
	c->not_before_us = 0;
	call_restart(c);
	return true;
}

static const char *host_of(struct call *c)
{
	return c->flags & CALL_TOKEN ? "the token server" : endpoint_of(c)->host;
}

/* The endpoint's secrets go to the endpoint alone. */
static void add_authorization(struct call *c, struct strv *headers)
{
	const struct endpoint *ep = endpoint_of(c);

	if (c->flags & CALL_TOKEN || c->foreign || !ep->authorization)
		return;
	strv_take(headers, mem_printf("Authorization: %s", ep->authorization));
}

static void find_url(struct call *c)
{
	struct endpoint *ep = endpoint_of(c);

	if (c->url)
		return;
	if (c->flags & CALL_TOKEN) {
		c->url = mem_strdup(c->path);
		return;
	}
	registry_probe(c->r, ep);
	c->url = registry_endpoint_url(ep, c->path);
}

int call_start(struct call *c, struct err *e)
{
	osb_cleanup(strv_done) struct strv headers = STRV_INIT;
	struct transfer_request rq = {
		.method = c->method,
		.headers = &headers,
		.range_from = c->range_from,
		.stall_s = c->r->o->limits.stall_s * (c->source ? SEND_PATIENCE : 1),
		.total_s = c->total_s,
		.sink = c->sink,
		.source = c->source,
		.source_bytes = c->source_bytes,
		.arg = c->arg,
	};
	struct registry_origin origin;
	int r;

	transfer_free(c->t);
	c->t = NULL;
	if (c->before) {
		r = c->before(c->arg, c, e);
		if (r < 0)
			return r;
		rq.range_from = c->range_from;
	}
	find_url(c);
	r = registry_origin_of(c->url, &origin, e);
	if (r < 0)
		return r;
	strv_copy(&headers, strv_args(&c->headers));
	add_authorization(c, &headers);
	c->auth_serial = endpoint_of(c)->auth_serial;
	rq.url = c->url;
	if (image_ref_host_is_loopback(view_of(origin.host)))
		rq.flags |= TRANSFER_NO_PROXY;
	if (registry_is_insecure(c->r, origin.host))
		rq.flags |= TRANSFER_NO_VERIFY;
	return transfer_start(c->r->transfers, &rq, &c->t, e);
}

/* Half of the time at least, so that many of us do not come back at once. */
static uint64_t backoff_us(const struct call *c)
{
	uint64_t ms = c->r->o->limits.backoff_ms;
	uint16_t noise;

	for (unsigned i = 1; i < c->failures && ms < BACKOFF_MAX_MS; i++)
		ms *= 2;
	ms = MIN(ms, (uint64_t)BACKOFF_MAX_MS);
	rand_bytes(&noise, sizeof(noise));
	return ms * 500 + ms * 500 * noise / UINT16_MAX;
}

/* `e` says what happened. */
static int try_again(struct call *c, uint64_t wait_s, struct err *e)
{
	unsigned max = c->r->o->limits.attempts;

	if (!(c->flags & CALL_TOKEN) && endpoint_of(c)->mirror)
		max = MIN(max, (unsigned)MIRROR_FAILURES);
	if (wait_s > RETRY_AFTER_MAX)
		return err_ctx(e, "come back after %" PRIu64 " s", wait_s);
	if (c->flags & CALL_ONCE || ++c->failures >= max)
		return e->code;
	c->not_before_us = clock_mono_us() + MAX(backoff_us(c), wait_s * 1000000);
	call_restart(c);
	return CALL_AGAIN;
}

static int follow(struct call *c, struct err *e)
{
	struct registry_origin from, to;
	char *next;
	int r;

	if (c->flags & CALL_TOKEN || !c->t->head.location)
		return err_set(e, -EBADMSG, "%s answered %d, a redirect that we do not follow",
			       host_of(c), c->t->head.status);
	if (++c->redirects > REGISTRY_REDIRECTS_MAX)
		return err_set(e, -EBADMSG, "%s redirects more than %d times", host_of(c),
			       REGISTRY_REDIRECTS_MAX);
	next = registry_url_join(c->url, c->t->head.location);
	if (!next)
		return err_set(e, -EBADMSG, "%s redirects to a malformed URL", host_of(c));
	r = registry_origin_of(c->url, &from, e);
	if (r == 0)
		r = registry_check_way(c->r, &from, next, &to, e);
	if (r < 0) {
		free(next);
		return err_ctx(e, "%s redirects us", host_of(c));
	}
	free(c->url);
	c->url = next;
	c->foreign = !registry_origin_eq(&to, &endpoint_of(c)->origin);
	return CALL_AGAIN;
}

static int answer_challenge(struct call *c, struct err *e)
{
	struct endpoint *ep = endpoint_of(c);
	int r;

	if (c->flags & CALL_TOKEN || c->foreign || ++c->challenges > CHALLENGES_MAX)
		return registry_answer_error(c->t, host_of(c), e);
	/* Somebody else may have got a new token meanwhile. */
	if (c->auth_serial != ep->auth_serial)
		return CALL_AGAIN;
	r = registry_authorize(c->r, ep, c->t, e);
	return r < 0 ? r : CALL_AGAIN;
}

static bool worth_another_try(int status)
{
	return status == 408 || status == 425 || status == 429 || status == 500 || status == 502 ||
	       status == 503 || status == 504;
}

int call_judge(struct call *c, struct err *e)
{
	const struct transfer *t = c->t;
	int status = t->head.status;

	c->not_before_us = 0;
	if (t->failed.code < 0) {
		(void)err_set(e, t->failed.code, "%s: %s", host_of(c), t->failed.msg);
		return t->failed.code != -EHOSTUNREACH || t->certificate ? e->code
									 : try_again(c, 0, e);
	}
	if (status >= 200 && status <= 299)
		return CALL_DONE;
	if (status == 301 || status == 302 || status == 303 || status == 307 || status == 308)
		return follow(c, e);
	if (status == 401)
		return answer_challenge(c, e);
	(void)registry_answer_error(t, host_of(c), e);
	return worth_another_try(status) ? try_again(c, t->head.retry_after_s, e) : e->code;
}

int call_run(struct call *c, struct err *e)
{
	int r;

	do {
		/* Others go on while this one waits for its time. */
		transfers_idle(c->r->transfers, c->not_before_us);
		r = call_start(c, e);
		if (r < 0)
			return r;
		(void)transfers_wait(c->r->transfers, c->t, UINT64_MAX);
		r = call_judge(c, e);
	} while (r == CALL_AGAIN);
	return r;
}
