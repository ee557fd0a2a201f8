/*
 * execd/code_pool.c - see code_pool.h.
 */
#include "execd/code_pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/counted_names.h"
#include "execd/app.h"
#include "execd/code_driver.h"
#include "execd/code_languages.h"
#include "execd/code_message.h"
#include "execd/env.h"
#include "net/loop.h"

struct pooled {
	struct list link;
	struct code_pool *pool;
	const struct code_language *language;
	struct code_driver *driver;
	bool ready;
};

/* What is to be replaced, once nobody is on the stack. */
struct code_pool {
	struct app *app;
	struct list all;
	struct list wanted; /* of struct want */
	struct loop_task *refill;
};

struct want {
	struct list link;
	const struct code_language *language;
	size_t n;
};

static bool on_output(void *arg, enum code_stream_name stream, struct view bytes)
{
	(void)arg;
	(void)stream;
	(void)bytes;
	return true;
}

static void pooled_free(struct pooled *d)
{
	list_remove(&d->link);
	code_driver_stop(d->driver, /* at_once= */ true);
	free(d);
}

static bool on_message(void *arg, const struct code_message *m)
{
	struct pooled *d = arg;

	/* Whatever else it says, its end will follow. */
	if (m->kind == CODE_READY)
		d->ready = true;
	return true;
}

/* One that cannot be started is not tried for ever: what is missing stays missing until a context
 * was created. */
static void on_ended(void *arg, int status, const char *killed)
{
	struct pooled *d = arg;

	(void)status;
	(void)killed;
	log_line(LOG_WARN, "a pooled interpreter has ended", LOG_S("language", d->language->name));
	pooled_free(d);
}

static const struct code_driver_events pool_events = {on_output, on_message, on_ended};

static int add(struct code_pool *p, const struct code_language *language, struct err *e)
{
	struct code_driver_spec spec = {.language = language};
	struct pooled *d = mem_new(struct pooled);
	int r;

	d->pool = p;
	d->language = language;
	list_init(&d->link);
	r = env_for_command(p->app, /* envs= */ NULL, &spec.env, e);
	if (r == 0)
		r = code_driver_start(p->app, &spec, &pool_events, d, &d->driver, e);
	strv_done(&spec.env);
	if (r < 0)
		free(d);
	else
		list_push_back(&p->all, &d->link);
	return r;
}

static size_t count(const struct code_pool *p, const struct code_language *language)
{
	size_t n = 0;

	list_each_safe (it, next, &p->all)
		if (list_entry(it, struct pooled, link)->language == language)
			n++;
	return n;
}

static void on_refill(void *arg)
{
	struct code_pool *p = arg;

	list_each_safe (it, next, &p->wanted) {
		struct want *w = list_entry(it, struct want, link);

		for (size_t n = count(p, w->language); n < w->n; n++) {
			struct err e = ERR_NONE;

			if (add(p, w->language, &e) < 0) {
				log_line(LOG_WARN, "interpreter not started ahead",
					 LOG_S("err", e.msg));
				break;
			}
		}
	}
}

int code_pool_check(struct view text, struct err *e)
{
	struct view rest = text, name;
	uint64_t n;

	if (counted_names_check(text, CODE_POOL_MAX, e) < 0)
		return err_ctx(e, "code pool");
	while (counted_names_next(&rest, &name, &n, e) > 0)
		if (!code_language_find(name))
			return err_set(e, -EINVAL,
				       "code pool: '" VIEW_FMT "' is no language with a driver",
				       VIEW_ARG(name));
	return 0;
}

void code_pool_fill(struct code_pool *p, struct view text)
{
	struct err e = ERR_NONE;
	struct view name;
	uint64_t n;

	if (counted_names_check(text, CODE_POOL_MAX, &e) < 0) {
		log_line(LOG_WARN, "no interpreters are started ahead", LOG_S("err", e.msg));
		return;
	}
	while (counted_names_next(&text, &name, &n, &e) > 0) {
		struct want *w = mem_new(struct want);

		w->language = code_language_find(name);
		w->n = (size_t)n;
		if (w->language)
			list_push_back(&p->wanted, &w->link);
		else
			free(w);
	}
	if (!list_empty(&p->wanted))
		loop_task_post(p->refill);
}

static bool same_env(const struct code_pool *p, const struct code_driver *d)
{
	const struct strv *has = code_driver_env(d);
	struct strv now = STRV_INIT;
	struct err e = ERR_NONE;
	bool same = env_for_command(p->app, /* envs= */ NULL, &now, &e) == 0;

	/* The driver's has one more: where its channel is. */
	same = same && has->len >= now.len && has->len <= now.len + 1;
	for (size_t i = 0; same && i < now.len; i++)
		same = strcmp(now.v[i], has->v[i]) == 0;
	strv_done(&now);
	return same;
}

struct code_driver *code_pool_take(struct code_pool *p, const struct code_language *language)
{
	struct code_driver *found = NULL;

	if (list_empty(&p->wanted))
		return NULL;
	list_each_safe (it, next, &p->all) {
		struct pooled *d = list_entry(it, struct pooled, link);

		if (found || d->language != language || !d->ready)
			continue;
		/* The sandbox's variables may have changed since it was started. */
		if (same_env(p, d->driver))
			found = take_ptr(d->driver);
		pooled_free(d);
	}
	loop_task_post(p->refill);
	return found;
}

struct code_pool *code_pool_new(struct app *app)
{
	struct code_pool *p = mem_new(struct code_pool);

	p->app = app;
	list_init(&p->all);
	list_init(&p->wanted);
	p->refill = loop_task_new(app->loop, on_refill, p);
	return p;
}

void code_pool_free(struct code_pool *p)
{
	if (!p)
		return;
	list_each_safe (it, next, &p->all)
		pooled_free(list_entry(it, struct pooled, link));
	list_each_safe (it, next, &p->wanted)
		free(list_entry(it, struct want, link));
	loop_task_free(p->refill);
	free(p);
}
