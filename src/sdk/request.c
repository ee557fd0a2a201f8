/*
 * sdk/request.c - any request of the lifecycle API.
 */
#include <opensandbox/client.h>
#include <string.h>

#include "base/err.h"
#include "sdk/ask.h"
#include "sdk/client_int.h"
#include "sdk/fail.h"

int osb_request(osb_client *c, const char *method, const char *path, const char *body_json,
		const osb_call *call, char **ret_json, osb_error *e)
{
	struct ask_part part = {.bytes = view_of(body_json), .fd = -1};
	struct ask q = {
		.method = method,
		.to = &c->server,
		.target = view_of(path),
		.with_key = true,
		.content_type = body_json ? "application/json" : NULL,
		.parts = &part,
		.parts_n = body_json ? 1 : 0,
		.twice = strcmp(method, "GET") == 0 || strcmp(method, "PUT") == 0 ||
			 strcmp(method, "DELETE") == 0,
	};
	struct answer answer;
	int r;

	if (!path || path[0] != '/')
		return fail(e, OSB_ERR_INVALID, "a path begins with '/'");
	answer_init(&answer);
	r = ask_whole(c, &q, call, &answer, e);
	if (r == 0 && ret_json)
		*ret_json = buf_take_str(&answer.body);
	answer_done(&answer);
	return r;
}
