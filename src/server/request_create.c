/*
 * server/request_create.c - the checks of a create request, in the order in which they are
 * reported.
 *
 * A body that does not have the right shape is 422; a shape that asks for something impossible is
 * 400.  Explicit nulls count as absent, unknown fields are ignored.
 */
#include "server/request_create.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/num.h"
#include "codec/counted_names.h"
#include "codec/image_ref.h"
#include "codec/json.h"
#include "codec/label.h"
#include "codec/quantity.h"
#include "codec/shell_words.h"
#include "server/config.h"
#include "server/failure.h"
#include "server/images.h"
#include "server/platform.h"
#include "server/request_fields.h"
#include "server/request_lifecycle.h"
#include "server/request_network.h"
#include "server/request_volumes.h"
#include "server/sandbox.h"

#define TIMEOUT_MIN_S  60
#define TIMEOUT_MAX_S  (INT64_C(100) * 366 * 24 * 3600)
#define RENEW_MIN_S    300
#define RENEW_MAX_S    86400
#define ENTRYPOINT_MAX 1024
#define PIDS_WITHOUT   4096

/* What a step reads and fills. */
struct reading {
	const struct json *body;
	const struct config *config;
	struct sandbox_spec *spec;
	int64_t timeout_s;
};

static bool blank(struct view text)
{
	return view_trim(text).len == 0;
}

/* Interpreters that the sandbox starts ahead; which languages there are, it knows itself. */
static int read_code_pool(struct reading *r, struct failure *f)
{
	const char *pool = pairs_get(&r->spec->extensions, "opensandbox.code.pool");
	struct err e = ERR_NONE;

	if (pool && counted_names_check(view_of(pool), CONFIG_CODE_POOL_MAX, &e) < 0)
		return failure_set(f, 400, REQUEST_CODE, "extensions: opensandbox.code.pool: %s",
				   e.msg);
	if (!pool)
		pool = r->config->code_pool;
	r->spec->code_pool = pool ? mem_strdup(pool) : NULL;
	return 0;
}

/* Whether requests resume it when it is paused. */
static int read_resume(struct reading *r, struct failure *f)
{
	const char *text = pairs_get(&r->spec->extensions, "access.resume.on.request");
	struct view word = view_trim(view_of(text));

	if (!text || view_iis(word, "false"))
		return 0;
	if (!view_iis(word, "true"))
		return failure_set(f, 400, REQUEST_CODE,
				   "extensions: access.resume.on.request must be true or false");
	r->spec->resume_on_request = true;
	return 0;
}

static int read_extensions(struct reading *r, struct failure *f)
{
	const char *renew, *pool;
	uint64_t seconds;

	if (request_pairs(r->body, "extensions", &r->spec->extensions, f) < 0)
		return -1;
	renew = pairs_get(&r->spec->extensions, "access.renew.extend.seconds");
	if (renew) {
		if (!num_parse_u64(view_trim(view_of(renew)), &seconds) || seconds < RENEW_MIN_S ||
		    seconds > RENEW_MAX_S)
			return failure_set(
				f, 400, REQUEST_CODE,
				"extensions: access.renew.extend.seconds must be a whole "
				"number from %d to %d",
				RENEW_MIN_S, RENEW_MAX_S);
		r->spec->renew_extend_s = (int64_t)seconds;
	}
	if (read_resume(r, f) < 0)
		return -1;
	pool = pairs_get(&r->spec->extensions, "poolRef");
	if (pool && !blank(view_of(pool)))
		return failure_set(f, 400, "SANDBOX::UNSUPPORTED_POOL_REF",
				   "this server has no pools: extensions.poolRef cannot be used");
	return read_code_pool(r, f);
}

/* Exactly one source; the ones that this server does not have are refused by name. */
static int read_source(struct reading *r, struct failure *f)
{
	struct view uri = VIEW_NONE, snapshot = VIEW_NONE, template_id = VIEW_NONE;
	const struct json *image = NULL;

	if (request_object(r->body, "image", &image, f) < 0 ||
	    request_string(r->body, "snapshotId", &snapshot, f) < 0 ||
	    request_string(r->body, "templateId", &template_id, f) < 0)
		return -1;
	if (image && request_image(image, &uri, &r->spec->auth, f) < 0)
		return -1;
	if (!blank(template_id))
		return failure_set(f, 501, "FSB::API_NOT_SUPPORTED",
				   "this server has no templates: templateId cannot be used");
	if (blank(uri) == blank(snapshot))
		return failure_set(f, 422, REQUEST_CODE,
				   "exactly one of image.uri and snapshotId must be given");
	if (!blank(snapshot)) {
		snapshot = view_trim(snapshot);
		r->spec->snapshot_id = mem_strndup(snapshot.p, snapshot.len);
		return 0;
	}
	uri = view_trim(uri);
	r->spec->image_uri = mem_strndup(uri.p, uri.len);
	if (strcmp(images_alias(r->config, r->spec->image_uri), IMAGES_HOST) == 0) {
		r->spec->root.image = mem_strdup(IMAGES_HOST);
		r->spec->root.host_base = true;
	}
	return 0;
}

/* The Java pool sends a whole command line as one string.  Without one, it is the image's; the host
 * image has none. */
static int read_entrypoint(struct reading *r, struct failure *f)
{
	static const char *const idle[] = {"tail", "-f", "/dev/null"}; /* of a snapshot */
	struct strv *words = &r->spec->entrypoint;
	const struct json *array = NULL;

	if (request_array(r->body, "entrypoint", &array, f) < 0)
		return -1;
	if (!array && r->spec->snapshot_id) {
		for (size_t i = 0; i < ARRAY_LEN(idle); i++)
			strv_add(words, idle[i]);
		return 0;
	}
	if (!array && !r->spec->root.image)
		return 0;
	if (!array || json_len(array) == 0)
		return failure_set(
			f, 422, REQUEST_CODE,
			"entrypoint must be given with an image, and have at least one word");
	if (request_words(array, "entrypoint", ENTRYPOINT_MAX, words, f) < 0)
		return -1;
	if (words->len == 1 && strpbrk(words->v[0], " \t\n")) {
		struct strv split = STRV_INIT;
		int bad = shell_words_split(view_of(words->v[0]), &split);

		strv_done(words);
		*words = split;
		if (bad < 0)
			return failure_set(f, 400, "DOCKER::INVALID_ENTRYPOINT",
					   "entrypoint: a quote is not closed");
	}
	if (words->len == 0 || words->v[0][0] == '\0')
		return failure_set(f, 400, "DOCKER::INVALID_ENTRYPOINT",
				   "entrypoint: the first word must name a program");
	return 0;
}

static int read_metadata(struct reading *r, struct failure *f)
{
	struct pairs *m = &r->spec->metadata;
	const struct json *object = NULL;

	if (request_object(r->body, "metadata", &object, f) < 0 ||
	    request_pairs(r->body, "metadata", m, f) < 0)
		return -1;
	r->spec->has_metadata = object != NULL;
	for (size_t i = 0; i < m->n; i++)
		if (request_label(view_of(m->v[i].name), view_of(m->v[i].value),
				  "SANDBOX::INVALID_METADATA_LABEL", f) < 0)
			return -1;
	return 0;
}

static int read_platform(struct reading *r, struct failure *f)
{
	const struct json *platform = NULL;
	struct view os = VIEW_NONE, arch = VIEW_NONE;

	if (request_object(r->body, "platform", &platform, f) < 0)
		return -1;
	if (!platform)
		return 0;
	if (request_string(platform, "os", &os, f) < 0 ||
	    request_string(platform, "arch", &arch, f) < 0)
		return -1;
	os = view_trim(os);
	arch = view_trim(arch);
	if (!os.p || !arch.p)
		return failure_set(f, 422, REQUEST_CODE, "platform: os and arch must be given");
	if (!view_iis(os, "linux"))
		return failure_set(f, 400, REQUEST_CODE,
				   "platform.os: sandboxes here run linux only");
	if (!view_iis(arch, platform_arch()))
		return failure_set(f, 400, REQUEST_CODE, "platform.arch: this host is %s",
				   platform_arch());
	r->spec->os = mem_strdup("linux");
	r->spec->arch = mem_strdup(platform_arch());
	return 0;
}

static int read_timeout(struct reading *r, struct failure *f)
{
	int64_t cap = r->config->max_sandbox_timeout_seconds;
	struct err e = ERR_NONE;
	int found = json_field_int(r->body, "timeout", INT64_MIN, INT64_MAX, &r->timeout_s, &e);

	if (found < 0)
		return failure_set(f, 422, REQUEST_CODE, "%s", e.msg);
	if (found == 0)
		return 0;
	if (r->timeout_s < TIMEOUT_MIN_S)
		return failure_set(f, 422, REQUEST_CODE, "timeout must be at least %d seconds",
				   TIMEOUT_MIN_S);
	if (cap > 0 && r->timeout_s > cap)
		return failure_set(f, 400, REQUEST_CODE,
				   "timeout must be at most %lld seconds on this server",
				   (long long)cap);
	if (r->timeout_s > TIMEOUT_MAX_S)
		return failure_set(f, 400, REQUEST_CODE, "timeout lies too far in the future");
	return 0;
}

static int read_resource(const char *field, const struct pair *p, uint64_t *cpu, uint64_t *memory,
			 struct failure *f)
{
	if (strcmp(p->name, "cpu") == 0) {
		if (!quantity_cpu_milli(view_of(p->value), cpu))
			return failure_set(f, 400, REQUEST_CODE,
					   "%s.cpu: '%.40s' is no number of cores; write \"2\", "
					   "\"0.5\" or \"500m\"",
					   field, p->value);
		return 0;
	}
	if (strcmp(p->name, "memory") == 0) {
		if (!quantity_bytes(view_of(p->value), memory))
			return failure_set(
				f, 400, REQUEST_CODE,
				"%s.memory: '%.40s' is no size; write \"512Mi\" or \"2Gi\"", field,
				p->value);
		return 0;
	}
	if (strcmp(p->name, "gpu") == 0)
		return failure_set(f, 400, REQUEST_CODE,
				   "%s.gpu: the native runtime gives no GPUs to sandboxes", field);
	return failure_set(
		f, 400, REQUEST_CODE,
		"%s: '%.60s' is not a resource this server can limit; it knows cpu and memory",
		field, p->name);
}

static int read_resources(struct reading *r, struct failure *f)
{
	struct runtime_limits *l = &r->spec->runtime_limits;
	struct pairs *limits = &r->spec->limits, *requests = &r->spec->requests;

	if (!json_get(r->body, "resourceLimits"))
		return failure_set(f, 422, REQUEST_CODE, "resourceLimits must be given");
	if (request_pairs(r->body, "resourceLimits", limits, f) < 0 ||
	    request_pairs(r->body, "resourceRequests", requests, f) < 0)
		return -1;
	for (size_t i = 0; i < limits->n; i++)
		if (read_resource("resourceLimits", &limits->v[i], &l->cpu_milli, &l->memory_bytes,
				  f) < 0)
			return -1;
	for (size_t i = 0; i < requests->n; i++)
		if (read_resource("resourceRequests", &requests->v[i], &l->cpu_weight_milli,
				  &l->memory_low_bytes, f) < 0)
			return -1;
	if ((l->memory_bytes && l->memory_low_bytes > l->memory_bytes) ||
	    (l->cpu_milli && l->cpu_weight_milli > l->cpu_milli))
		return failure_set(f, 400, REQUEST_CODE,
				   "resourceRequests must not exceed resourceLimits");
	l->pids = (uint64_t)(r->config->pids_limit > 0 ? r->config->pids_limit : PIDS_WITHOUT);
	return 0;
}

static int read_env(struct reading *r, struct failure *f)
{
	struct pairs *env = &r->spec->env;

	if (request_pairs_with_nulls(r->body, "env", env, f) < 0)
		return -1;
	for (size_t i = 0; i < env->n; i++) {
		if (env->v[i].name[0] == '\0' || strchr(env->v[i].name, '='))
			return failure_set(f, 422, REQUEST_CODE,
					   "env: '%.60s' is no name of a variable", env->v[i].name);
		if (strcmp(env->v[i].name, "OPENSANDBOX_LIFECYCLE") == 0)
			return failure_set(f, 422, REQUEST_CODE,
					   "env: OPENSANDBOX_LIFECYCLE is reserved");
	}
	return 0;
}

static int read_secure_access(struct reading *r, struct failure *f)
{
	bool secure = false;

	if (request_bool(r->body, "secureAccess", &secure, f) < 0)
		return -1;
	if (secure) {
		r->spec->secure_token = mem_alloc(SANDBOX_TOKEN_LEN + 1);
		sandbox_make_token(r->spec->secure_token);
	}
	return 0;
}

static int read_network(struct reading *r, struct failure *f)
{
	return request_network(r->body, r->config, r->spec, f);
}

static int read_volumes(struct reading *r, struct failure *f)
{
	return request_volumes(r->body, &r->config->allowed_host_paths, &r->spec->volumes, f);
}

/* What is not the host image has one full name; whether it is here is asked later. */
static int resolve_image(struct reading *r, struct failure *f)
{
	char key[IMAGE_REF_TEXT_MAX + 1];
	struct err e = ERR_NONE;
	struct image_ref ref;

	if (r->spec->root.image || !r->spec->image_uri)
		return 0;
	if (image_ref_parse(view_of(images_alias(r->config, r->spec->image_uri)), &ref, &e) < 0)
		return failure_set(f, 400, REQUEST_CODE, "image.uri: %s", e.msg);
	images_key(&ref, key, sizeof(key));
	r->spec->reference = mem_strdup(key);
	return 0;
}

static int read_lifecycle(struct reading *r, struct failure *f)
{
	return request_lifecycle(r->body, r->spec, f);
}

int request_create(struct view body, const struct config *config, struct sandbox_spec *ret,
		   int64_t *ret_timeout_s, struct failure *f)
{
	static int (*const steps[])(struct reading * r, struct failure * f) = {
		read_extensions, read_source,	     read_entrypoint, read_metadata,
		read_platform,	 read_timeout,	     read_resources,  read_env,
		read_lifecycle,	 read_secure_access, read_network,    read_volumes,
		resolve_image,
	};
	osb_cleanup(json_freep) struct json *v = NULL;
	struct sandbox_spec spec = {0};
	struct reading r = {.config = config, .spec = &spec};
	struct err e = ERR_NONE;

	if (json_parse(body, 0, &v, &e) < 0)
		return failure_set(f, 422, REQUEST_CODE, "the body is not JSON: %s", e.msg);
	if (json_kind(v) != JSON_OBJECT)
		return failure_set(f, 422, REQUEST_CODE, "the body must be a JSON object");
	r.body = v;
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		if (steps[i](&r, f) < 0) {
			sandbox_spec_done(&spec);
			return -1;
		}
	}
	*ret = spec;
	*ret_timeout_s = r.timeout_s;
	return 0;
}
