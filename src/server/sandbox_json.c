/*
 * server/sandbox_json.c - the spec as JSON: for the store, and for execd.
 */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "codec/json.h"
#include "codec/json_copy.h"
#include "codec/json_writer.h"
#include "server/sandbox.h"

/* Above everything that a request may hold: requests are bounded far below. */
#define TEXT_MAX (8u << 20)

static void put_optional(struct json_writer *w, const char *key, const char *text)
{
	if (text)
		json_put_cstr(w, key, text);
}

static void put_pairs(struct json_writer *w, const char *key, const struct pairs *p)
{
	json_write_key(w, key);
	json_write_object(w);
	for (size_t i = 0; i < p->n; i++)
		json_put_cstr(w, p->v[i].name, p->v[i].value);
	json_write_object_end(w);
}

static void put_strings(struct json_writer *w, const char *key, const struct strv *s)
{
	json_write_key(w, key);
	json_write_array(w);
	for (size_t i = 0; i < s->len; i++)
		json_write_cstr(w, s->v[i]);
	json_write_array_end(w);
}

static void put_hook(struct json_writer *w, const struct sandbox_hook *h)
{
	json_write_object(w);
	put_optional(w, "name", h->name);
	put_optional(w, "schedule", h->schedule);
	put_strings(w, "command", &h->command);
	json_put_int(w, "timeoutSeconds", h->timeout_s);
	json_write_object_end(w);
}

static void put_lifecycle(struct json_writer *w, const struct sandbox_spec *s)
{
	if (!s->pre_start && s->periodic_n == 0)
		return;
	json_write_key(w, "lifecycle");
	json_write_object(w);
	if (s->pre_start) {
		json_write_key(w, "preStart");
		put_hook(w, s->pre_start);
	}
	json_write_key(w, "periodic");
	json_write_array(w);
	for (size_t i = 0; i < s->periodic_n; i++)
		put_hook(w, &s->periodic[i]);
	json_write_array_end(w);
	json_write_object_end(w);
}

/* Its policy is JSON already. */
static void put_network(struct json_writer *w, const struct sandbox_network *n)
{
	json_write_key(w, "network");
	json_write_object(w);
	put_optional(w, "token", n->token);
	if (n->policy) {
		json_write_key(w, "policy");
		json_write_text(w, view_of(n->policy));
		json_put_bool(w, "credentialProxy", n->credential_proxy);
		put_pairs(w, "settings", &n->settings);
		if (n->vault_hosts.len)
			put_strings(w, "vaultHosts", &n->vault_hosts);
	}
	json_write_object_end(w);
}

/* Of the host image alone there is nothing more to say. */
void sandbox_root_format(struct json_writer *w, const struct sandbox_root *r)
{
	put_optional(w, "image", r->image);
	if (r->host_base && r->layers_n == 0)
		return;
	json_put_bool(w, "hostBase", r->host_base);
	json_write_key(w, "layers");
	json_write_array(w);
	for (size_t i = 0; i < r->layers_n; i++)
		json_write_uint(w, r->layers[i]);
	json_write_array_end(w);
	put_pairs(w, "imageEnv", &r->env);
	put_optional(w, "user", r->user);
	put_optional(w, "cwd", r->cwd);
	put_strings(w, "imageStart", &r->start);
}

static int finish(struct json_writer *w, struct buf *out, char **ret, struct err *e)
{
	int r = json_writer_end(w);

	if (r < 0) {
		buf_done(out);
		return err_set(e, r, "the sandbox's spec is too large");
	}
	*ret = buf_take_str(out);
	return 0;
}

int sandbox_spec_format(const struct sandbox_spec *s, char **ret, struct err *e)
{
	const struct runtime_limits *l = &s->runtime_limits;
	struct buf out = BUF_INIT(TEXT_MAX);
	struct json_writer w;

	json_writer_init(&w, &out);
	json_write_object(&w);
	put_optional(&w, "imageUri", s->image_uri);
	put_optional(&w, "reference", s->reference);
	put_optional(&w, "snapshotId", s->snapshot_id);
	sandbox_root_format(&w, &s->root);
	volumes_list_format(&w, "volumes", &s->volumes);
	put_network(&w, &s->network);
	put_strings(&w, "entrypoint", &s->entrypoint);
	put_pairs(&w, "env", &s->env);
	put_pairs(&w, "metadata", &s->metadata);
	json_put_bool(&w, "hasMetadata", s->has_metadata);
	put_pairs(&w, "limits", &s->limits);
	put_pairs(&w, "requests", &s->requests);
	put_pairs(&w, "extensions", &s->extensions);
	put_optional(&w, "os", s->os);
	put_optional(&w, "arch", s->arch);
	put_optional(&w, "secureToken", s->secure_token);
	json_put_bool(&w, "resumeOnRequest", s->resume_on_request);
	json_put_int(&w, "renewExtendSeconds", s->renew_extend_s);
	json_put_int(&w, "memoryBytes", (int64_t)l->memory_bytes);
	json_put_int(&w, "memoryLowBytes", (int64_t)l->memory_low_bytes);
	json_put_int(&w, "cpuMilli", (int64_t)l->cpu_milli);
	json_put_int(&w, "cpuWeightMilli", (int64_t)l->cpu_weight_milli);
	json_put_int(&w, "pids", (int64_t)l->pids);
	put_lifecycle(&w, s);
	json_write_object_end(&w);
	return finish(&w, &out, ret, e);
}

/* The request's variables, and those of the image that it does not set. */
static void put_environment(struct json_writer *w, const struct sandbox_spec *s)
{
	json_write_key(w, "env");
	json_write_object(w);
	for (size_t i = 0; i < s->root.env.n; i++)
		if (!pairs_get(&s->env, s->root.env.v[i].name))
			json_put_cstr(w, s->root.env.v[i].name, s->root.env.v[i].value);
	for (size_t i = 0; i < s->env.n; i++)
		json_put_cstr(w, s->env.v[i].name, s->env.v[i].value);
	json_write_object_end(w);
}

int sandbox_start_file(const struct sandbox_spec *s, const char *token, struct view authority,
		       char **ret, struct err *e)
{
	struct buf out = BUF_INIT(TEXT_MAX);
	struct json_writer w;

	json_writer_init(&w, &out);
	json_write_object(&w);
	put_strings(&w, "entrypoint", &s->entrypoint);
	put_environment(&w, s);
	put_optional(&w, "user", s->root.user);
	put_optional(&w, "cwd", s->root.cwd);
	put_optional(&w, "token", token);
	put_optional(&w, "codePool", s->code_pool);
	if (authority.len)
		json_put_string(&w, "authority", authority);
	put_lifecycle(&w, s);
	json_write_object_end(&w);
	return finish(&w, &out, ret, e);
}

static char *get_text(const struct json *v, const char *key)
{
	struct view text;

	return json_str(json_get(v, key), &text) ? mem_strndup(text.p, text.len) : NULL;
}

static int64_t get_int(const struct json *v, const char *key)
{
	int64_t n = 0;

	return json_int(json_get(v, key), &n) ? n : 0;
}

static void get_pairs(const struct json *v, const char *key, struct pairs *ret)
{
	const struct json *object = json_get(v, key), *member;
	struct view name, value;
	void *it = NULL;

	while (object && json_next(object, &it, &name, &member))
		if (json_str(member, &value))
			pairs_add(ret, name, value);
}

static void get_strings(const struct json *v, const char *key, struct strv *ret)
{
	const struct json *array = json_get(v, key);
	struct view text;

	for (size_t i = 0; i < json_len(array); i++)
		if (json_str(json_at(array, i), &text))
			strv_add_view(ret, text);
}

static int get_network(const struct json *v, struct sandbox_network *ret, struct err *e)
{
	const struct json *network = json_get(v, "network"), *policy = json_get(network, "policy");
	struct buf text = BUF_INIT(TEXT_MAX);
	struct json_writer w;

	ret->token = get_text(network, "token");
	if (!policy)
		return 0;
	json_writer_init(&w, &text);
	json_write_json(&w, policy);
	if (json_writer_end(&w) < 0) {
		buf_done(&text);
		return err_set(e, -E2BIG, "a stored policy is too large");
	}
	ret->policy = buf_take_str(&text);
	(void)json_bool(json_get(network, "credentialProxy"), &ret->credential_proxy);
	get_pairs(network, "settings", &ret->settings);
	get_strings(network, "vaultHosts", &ret->vault_hosts);
	return 0;
}

static void get_hook(const struct json *v, struct sandbox_hook *ret)
{
	ret->name = get_text(v, "name");
	ret->schedule = get_text(v, "schedule");
	get_strings(v, "command", &ret->command);
	ret->timeout_s = get_int(v, "timeoutSeconds");
}

static void get_lifecycle(const struct json *v, struct sandbox_spec *ret)
{
	const struct json *lifecycle = json_get(v, "lifecycle");
	const struct json *pre_start = json_get(lifecycle, "preStart");
	const struct json *periodic = json_get(lifecycle, "periodic");

	if (pre_start) {
		ret->pre_start = mem_new(struct sandbox_hook);
		get_hook(pre_start, ret->pre_start);
	}
	ret->periodic_n = json_len(periodic);
	if (ret->periodic_n)
		ret->periodic = mem_new_array(struct sandbox_hook, ret->periodic_n);
	for (size_t i = 0; i < ret->periodic_n; i++)
		get_hook(json_at(periodic, i), &ret->periodic[i]);
}

void sandbox_root_parse(const struct json *v, struct sandbox_root *ret)
{
	const struct json *layers = json_get(v, "layers");
	int64_t number;

	ret->image = get_text(v, "image");
	ret->host_base = ret->image && !layers;
	(void)json_bool(json_get(v, "hostBase"), &ret->host_base);
	if (json_len(layers))
		ret->layers = mem_new_array(uint64_t, json_len(layers));
	for (size_t i = 0; i < json_len(layers); i++)
		if (json_int(json_at(layers, i), &number) && number > 0)
			ret->layers[ret->layers_n++] = (uint64_t)number;
	get_pairs(v, "imageEnv", &ret->env);
	ret->user = get_text(v, "user");
	ret->cwd = get_text(v, "cwd");
	get_strings(v, "imageStart", &ret->start);
}

/* The text is our own: what is missing in it is empty, not an error. */
int sandbox_spec_parse(struct view text, struct sandbox_spec *ret, struct err *e)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	bool has_metadata = false;
	int r = json_parse(text, 0, &v, e);

	if (r < 0)
		return r;
	*ret = (struct sandbox_spec){0};
	ret->image_uri = get_text(v, "imageUri");
	ret->reference = get_text(v, "reference");
	ret->snapshot_id = get_text(v, "snapshotId");
	sandbox_root_parse(v, &ret->root);
	volumes_list_parse(json_get(v, "volumes"), &ret->volumes);
	if (!ret->root.image && !ret->reference && !ret->snapshot_id)
		return err_set(e, -EINVAL, "a stored sandbox names no image");
	r = get_network(v, &ret->network, e);
	if (r < 0)
		return r;
	get_strings(v, "entrypoint", &ret->entrypoint);
	get_pairs(v, "env", &ret->env);
	get_pairs(v, "metadata", &ret->metadata);
	get_pairs(v, "limits", &ret->limits);
	get_pairs(v, "requests", &ret->requests);
	get_pairs(v, "extensions", &ret->extensions);
	(void)json_bool(json_get(v, "hasMetadata"), &has_metadata);
	ret->has_metadata = has_metadata;
	ret->os = get_text(v, "os");
	ret->arch = get_text(v, "arch");
	ret->secure_token = get_text(v, "secureToken");
	(void)json_bool(json_get(v, "resumeOnRequest"), &ret->resume_on_request);
	ret->renew_extend_s = get_int(v, "renewExtendSeconds");
	ret->runtime_limits = (struct runtime_limits){
		.memory_bytes = (uint64_t)get_int(v, "memoryBytes"),
		.memory_low_bytes = (uint64_t)get_int(v, "memoryLowBytes"),
		.cpu_milli = (uint64_t)get_int(v, "cpuMilli"),
		.cpu_weight_milli = (uint64_t)get_int(v, "cpuWeightMilli"),
		.pids = (uint64_t)get_int(v, "pids"),
	};
	get_lifecycle(v, ret);
	return 0;
}
