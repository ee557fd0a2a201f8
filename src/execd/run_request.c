/*
 * execd/run_request.c - fields of run and shell requests, with sentences that name them.
 */
#include "execd/run_request.h"

#include <errno.h>

#include "base/err.h"
#include "codec/json.h"
#include "execd/shell.h"
#include "execd/shell_script.h"

#define TIMEOUT_DEFAULT_MS ((int64_t)24 * 3600 * 1000)
#define TIMEOUT_MAX_S	   ((int64_t)366 * 24 * 3600)
#define ENVS_MAX	   1024

static int parse_object(struct view body, struct json **ret, struct err *e)
{
	int r = json_parse(body, JSON_FIRST_VALUE, ret, e);

	if (r == 0 && json_kind(*ret) != JSON_OBJECT)
		r = err_set(e, -EINVAL, "the body must be a JSON object");
	return r;
}

/* Text for a shell: there, not empty, and something that argv and scripts can hold. */
static int script_field(const struct json *v, const char *key, struct view *ret, struct err *e)
{
	int r = json_field_string(v, key, ret, e);

	if (r < 0)
		return r;
	if (ret->len == 0)
		return err_set(e, -EINVAL, "'%s' is required and must not be empty", key);
	if (ret->len > SHELL_COMMAND_MAX)
		return err_set(e, -EINVAL, "'%s' must not be longer than %zu bytes", key,
			       SHELL_COMMAND_MAX);
	return 0;
}

int shell_request_decode(struct view body, struct shell_request *ret, struct err *e)
{
	int r;

	*ret = (struct shell_request){0};
	if (view_trim(body).len == 0)
		return 0;
	r = parse_object(body, &ret->body, e);
	if (r == 0)
		r = json_field_string(ret->body, "cwd", &ret->cwd, e);
	if (r >= 0)
		r = json_field_string(ret->body, "command", &ret->command, e);
	return r < 0 ? r : 0;
}

void shell_request_done(struct shell_request *q)
{
	json_free(q->body);
}

int session_run_request_decode(struct view body, struct session_run_request *ret, struct err *e)
{
	int r;

	*ret = (struct session_run_request){0};
	r = parse_object(body, &ret->body, e);
	if (r == 0)
		r = script_field(ret->body, "command", &ret->command, e);
	if (r == 0)
		r = json_field_int(ret->body, "timeout", 0, TIMEOUT_MAX_S * 1000, &ret->timeout_ms,
				   e);
	if (r >= 0)
		r = json_field_string(ret->body, "cwd", &ret->cwd, e);
	if (ret->timeout_ms == 0)
		ret->timeout_ms = TIMEOUT_DEFAULT_MS;
	return r < 0 ? r : 0;
}

void session_run_request_done(struct session_run_request *q)
{
	json_free(q->body);
}

static int parse_envs(const struct json *envs, struct strv *ret, struct err *e)
{
	const struct json *value;
	struct view name, text;
	void *it = NULL;

	if (json_len(envs) > ENVS_MAX)
		return err_set(e, -EINVAL, "'envs' has too many members");
	while (json_next(envs, &it, &name, &value)) {
		if (!shell_script_is_name(name))
			return err_set(e, -EINVAL, "'" VIEW_FMT "' in 'envs' is no variable's name",
				       VIEW_ARG(view_first(name, 64)));
		if (!json_str(value, &text) || view_has(text, '\0'))
			return err_set(e, -EINVAL, "'envs' must map names to strings without NULs");
		strv_env_set(ret, name, text);
	}
	return 0;
}

int isolated_run_request_decode(struct view body, struct isolated_run_request *ret, struct err *e)
{
	const struct json *envs = NULL;
	int r;

	*ret = (struct isolated_run_request){0};
	r = parse_object(body, &ret->body, e);
	if (r == 0)
		r = script_field(ret->body, "code", &ret->code, e);
	if (r < 0)
		return r;
	if (json_field_int(ret->body, "timeout_seconds", 0, TIMEOUT_MAX_S, &ret->timeout_s, e) <
		    0 ||
	    json_field_bool(ret->body, "background", &ret->background, e) < 0 ||
	    json_field_object(ret->body, "envs", &envs, e) < 0)
		return e->code;
	return envs ? parse_envs(envs, &ret->envs, e) : 0;
}

void isolated_run_request_done(struct isolated_run_request *q)
{
	json_free(q->body);
	strv_done(&q->envs);
}
