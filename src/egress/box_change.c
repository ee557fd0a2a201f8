/*
 * egress/box_change.c - changes of a box, one after the other: kernel, record, answer.
 */
#include "egress/box_change.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "egress/always.h"
#include "egress/box.h"
#include "egress/control.h"
#include "egress/enforce.h"
#include "egress/policy_file.h"

struct change {
	struct list link;
	bool begun;
	bool of_policy;
	bool in_force;		  /* the kernel has it; `policy` is the one before */
	struct net_policy policy; /* the new one, or the one before */
	box_changed_fn *done;
	void *arg;
};

void box_merge(const struct box *b, const struct net_policy *user, struct net_policy *ret)
{
	always_merge(b->egress->always, user, ret);
}

/* The policy of the change for that of the box, and the other way round.  On failure nothing has
 * changed. */
static int swap_policy(struct box *b, struct net_policy *policy, struct err *e)
{
	struct net_policy old = b->policy, old_effective = b->effective;
	int r;

	b->policy = *policy;
	box_merge(b, &b->policy, &b->effective);
	r = enforce_policy(b, e);
	if (r < 0) {
		net_policy_done(&b->effective);
		b->policy = old;
		b->effective = old_effective;
		return r;
	}
	net_policy_done(&old_effective);
	*policy = old;
	return 0;
}

/* The kernel has refused to go back: what it holds is what the box says, until the next change. */
static void take_back(struct box *b, struct change *c)
{
	struct err e = ERR_NONE;

	if (!c->in_force || swap_policy(b, &c->policy, &e) == 0)
		return;
	log_line(LOG_ERROR, "a policy that was not recorded stays in force", LOG_S("box", b->id),
		 LOG_S("err", e.msg));
}

static void finish(struct box *b, struct change *c, const struct err *e)
{
	box_changed_fn *done = c->done;
	void *arg = c->arg;

	if (e)
		take_back(b, c);
	list_remove(&c->link);
	net_policy_done(&c->policy);
	free(c);
	done(arg, e);
}

/* Beside a server the worker keeps it, alone it may have a file. */
static void record(struct box *b)
{
	struct err e = ERR_NONE;

	if (b->egress->control)
		control_save(b->egress->control, b);
	else if (policy_file_save(b->egress->settings->policy_file, &b->policy, &e) < 0)
		box_saved(b, &e);
	else
		box_saved(b, NULL);
}

/* The first in the row, unless it is under way.  With each that fails before it is recorded the
 * next one begins. */
static void begin(struct box *b)
{
	while (!list_empty(&b->changes)) {
		struct change *c = list_entry(b->changes.next, struct change, link);
		struct err e = ERR_NONE;

		if (c->begun)
			return;
		c->begun = true;
		if (!c->of_policy || swap_policy(b, &c->policy, &e) == 0) {
			c->in_force = c->of_policy;
			record(b);
			return;
		}
		finish(b, c, &e);
	}
}

static void append(struct box *b, struct net_policy *policy, box_changed_fn *done, void *arg)
{
	struct change *c = mem_new(struct change);

	c->done = done;
	c->arg = arg;
	if (policy) {
		c->of_policy = true;
		c->policy = *policy;
		*policy = NET_POLICY_NONE;
	}
	list_push_back(&b->changes, &c->link);
	begin(b);
}

void box_change_policy(struct box *b, struct net_policy *policy, box_changed_fn *done, void *arg)
{
	append(b, policy, done, arg);
}

void box_save(struct box *b, box_changed_fn *done, void *arg)
{
	append(b, NULL, done, arg);
}

void box_saved(struct box *b, const struct err *e)
{
	b->change_serial = 0;
	if (list_empty(&b->changes))
		return;
	finish(b, list_entry(b->changes.next, struct change, link), e);
	begin(b);
}

void box_cancel_changes(struct box *b)
{
	struct err e = ERR_NONE;

	(void)err_set(&e, -ECANCELED, "the sandbox was given another policy meanwhile, or ended");
	b->change_serial = 0;
	while (!list_empty(&b->changes))
		finish(b, list_entry(b->changes.next, struct change, link), &e);
}

void box_lists_changed(struct box *b)
{
	struct net_policy old = b->effective;
	struct err e = ERR_NONE;

	box_merge(b, &b->policy, &b->effective);
	if (enforce_policy(b, &e) == 0) {
		net_policy_done(&old);
		return;
	}
	net_policy_done(&b->effective);
	b->effective = old;
	log_line(LOG_ERROR, "the operator's lists are not in force", LOG_S("box", b->id),
		 LOG_S("err", e.msg));
}
