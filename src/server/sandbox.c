/*
 * server/sandbox.c - sandboxes as objects: states, reasons, names and values.
 */
#include "server/sandbox.h"

#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "base/rand.h"
#include "codec/base64.h"

static const char *const state_name[SANDBOX_STATES_] = {
	[SANDBOX_PENDING] = "Pending",	     [SANDBOX_RUNNING] = "Running",
	[SANDBOX_PAUSING] = "Pausing",	     [SANDBOX_PAUSED] = "Paused",
	[SANDBOX_RESUMING] = "Resuming",     [SANDBOX_STOPPING] = "Stopping",
	[SANDBOX_TERMINATED] = "Terminated", [SANDBOX_FAILED] = "Failed",
};

const char *sandbox_state_name(enum sandbox_state state)
{
	return state_name[state];
}

const char *sandbox_reason(const char *text)
{
	static const char *const known[] = {
		SANDBOX_REASON_STARTING, SANDBOX_REASON_RUNNING, SANDBOX_REASON_PAUSED,
		SANDBOX_REASON_EXITED,	 SANDBOX_REASON_ERROR,	 SANDBOX_REASON_OOM,
		SANDBOX_REASON_LOST,	 SANDBOX_REASON_PULLING, SANDBOX_REASON_PULL,
		SANDBOX_REASON_START,
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (strcmp(known[i], text) == 0)
			return known[i];
	return SANDBOX_REASON_LOST;
}

bool sandbox_is_over(const struct sandbox *b)
{
	return b->state == SANDBOX_TERMINATED || b->state == SANDBOX_FAILED;
}

void pairs_add(struct pairs *p, struct view name, struct view value)
{
	p->v = mem_resize(p->v, p->n + 1, sizeof(*p->v));
	p->v[p->n].name = mem_strndup(name.p, name.len);
	p->v[p->n].value = mem_strndup(value.p, value.len);
	p->n++;
}

static struct pair *find(const struct pairs *p, struct view name)
{
	for (size_t i = 0; i < p->n; i++)
		if (view_is(name, p->v[i].name))
			return &p->v[i];
	return NULL;
}

void pairs_set(struct pairs *p, struct view name, struct view value)
{
	struct pair *old = find(p, name);

	if (!old) {
		pairs_add(p, name, value);
		return;
	}
	free(old->value);
	old->value = mem_strndup(value.p, value.len);
}

void pairs_remove(struct pairs *p, struct view name)
{
	struct pair *old = find(p, name);
	size_t i;

	if (!old)
		return;
	free(old->name);
	free(old->value);
	i = (size_t)(old - p->v);
	memmove(old, old + 1, (p->n - i - 1) * sizeof(*old));
	p->n--;
}

const char *pairs_get(const struct pairs *p, const char *name)
{
	struct pair *found = find(p, view_of(name));

	return found ? found->value : NULL;
}

void pairs_done(struct pairs *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->v[i].name);
		free(p->v[i].value);
	}
	free(p->v);
	*p = (struct pairs){0};
}

static void hook_done(struct sandbox_hook *h)
{
	free(h->name);
	free(h->schedule);
	strv_done(&h->command);
}

void sandbox_root_done(struct sandbox_root *r)
{
	free(r->image);
	free(r->layers);
	pairs_done(&r->env);
	free(r->user);
	free(r->cwd);
	strv_done(&r->start);
	*r = (struct sandbox_root){0};
}

void sandbox_root_copy(struct sandbox_root *to, const struct sandbox_root *from)
{
	*to = (struct sandbox_root){
		.image = from->image ? mem_strdup(from->image) : NULL,
		.host_base = from->host_base,
		.layers_n = from->layers_n,
		.user = from->user ? mem_strdup(from->user) : NULL,
		.cwd = from->cwd ? mem_strdup(from->cwd) : NULL,
	};
	if (from->layers_n)
		to->layers = mem_dup(from->layers, from->layers_n * sizeof(*from->layers));
	for (size_t i = 0; i < from->env.n; i++)
		pairs_add(&to->env, view_of(from->env.v[i].name), view_of(from->env.v[i].value));
	strv_copy(&to->start, strv_args(&from->start));
}

void sandbox_spec_forget_auth(struct sandbox_spec *s)
{
	if (s->auth)
		explicit_bzero(s->auth, strlen(s->auth));
	free(take_ptr(s->auth));
}

static void network_done(struct sandbox_network *n)
{
	free(n->policy);
	free(n->token);
	pairs_done(&n->settings);
	strv_done(&n->vault_hosts);
}

void sandbox_spec_done(struct sandbox_spec *s)
{
	free(s->image_uri);
	free(s->reference);
	sandbox_spec_forget_auth(s);
	free(s->snapshot_id);
	free(s->secure_token);
	sandbox_root_done(&s->root);
	volumes_list_done(&s->volumes);
	network_done(&s->network);
	strv_done(&s->entrypoint);
	pairs_done(&s->env);
	pairs_done(&s->metadata);
	pairs_done(&s->limits);
	pairs_done(&s->requests);
	pairs_done(&s->extensions);
	free(s->os);
	free(s->arch);
	free(s->code_pool);
	if (s->pre_start) {
		hook_done(s->pre_start);
		free(s->pre_start);
	}
	for (size_t i = 0; i < s->periodic_n; i++)
		hook_done(&s->periodic[i]);
	free(s->periodic);
	*s = (struct sandbox_spec){0};
}

void sandbox_make_token(char ret[SANDBOX_TOKEN_LEN + 1])
{
	unsigned char secret[SANDBOX_TOKEN_LEN / 4 * 3];

	rand_bytes(secret, sizeof(secret));
	base64_format(secret, sizeof(secret), ret);
	for (char *c = ret; *c; c++)
		*c = (char)(*c == '+' ? '-' : *c == '/' ? '_' : *c);
}

void sandbox_need_network_token(struct sandbox *b)
{
	char token[SANDBOX_TOKEN_LEN + 1];

	if (b->spec.network.token)
		return;
	sandbox_make_token(token);
	b->spec.network.token = mem_strdup(token);
}

struct sandbox *sandbox_new(void)
{
	struct sandbox *b = mem_new(struct sandbox);

	list_init(&b->link);
	list_init(&b->waiting);
	b->reason = SANDBOX_REASON_STARTING;
	b->expiry_slot = SIZE_MAX;
	return b;
}

void sandbox_free(struct sandbox *b)
{
	if (!b)
		return;
	list_remove(&b->link);
	free(b->message);
	free(b->spec_text);
	sandbox_spec_done(&b->spec);
	free(b);
}
