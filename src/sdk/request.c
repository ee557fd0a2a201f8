/*
 * sdk/request.c - any request of the lifecycle API.
 */
#include <opensandbox/client.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "sdk/ask.h"
#include "sdk/client_int.h"
#include "sdk/document.h"
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

int osb_server_version(osb_client *c, const osb_call *call, char **ret_version, osb_error *e)
{
	struct address root = c->server;
	struct ask q = {.method = "GET", .to = &root, .target = VIEW("/version"), .twice = true};
	struct document d;
	const char *version;
	int r;

	root.base[strlen(root.base) - strlen("/v1")] = '\0';
	r = document_ask(c, &q, call, &d, e);
	if (r < 0)
		return r;
	version = document_str(&d, d.json, "version");
	*ret_version = mem_strdup(version ? version : "unknown");
	document_done(&d);
	return 0;
}
