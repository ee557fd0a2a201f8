/*
 * execd/code_request.c - see code_request.h.
 */
#include "execd/code_request.h"

#include <errno.h>

#include "base/err.h"
#include "codec/json.h"

static int parse(struct view body, struct code_request *ret, struct err *e)
{
	*ret = (struct code_request){0};
	if (json_parse(body, JSON_FIRST_VALUE, &ret->body, e) < 0)
		return e->code;
	if (json_kind(ret->body) != JSON_OBJECT)
		return err_set(e, -EINVAL, "the body must be a JSON object");
	return 0;
}

static int take_context(const struct json *v, struct code_request *ret, struct err *e)
{
	if (json_field_string(v, "id", &ret->id, e) < 0 ||
	    json_field_string(v, "language", &ret->language, e) < 0 ||
	    json_field_string(v, "cwd", &ret->cwd, e) < 0)
		return e->code;
	return 0;
}

int code_run_request_decode(struct view body, struct code_request *ret, struct err *e)
{
	const struct json *context = NULL;

	if (parse(body, ret, e) < 0 || json_field_string(ret->body, "code", &ret->code, e) < 0 ||
	    json_field_object(ret->body, "context", &context, e) < 0)
		return e->code;
	if (ret->code.len == 0)
		return err_set(e, -EINVAL, "'code' is required and must not be empty");
	return take_context(context, ret, e);
}

int code_context_request_decode(struct view body, struct code_request *ret, struct err *e)
{
	if (parse(body, ret, e) < 0)
		return e->code;
	return take_context(ret->body, ret, e);
}

void code_request_done(struct code_request *q)
{
	json_free(q->body);
}
