/*
 * execd/auth.c - one shared token, compared without telling how much of it was right.
 */
#include "execd/auth.h"

#include "base/bytes.h"
#include "execd/app.h"
#include "execd/options.h"
#include "net/http_server.h"

static const char refusal[] =
	"{\"error\":\"the header " AUTH_HEADER " is missing or wrong\","
	"\"code\":\"UNAUTHORIZED\",\"message\":\"the header " AUTH_HEADER " is missing or wrong\"}";

static bool is_open(struct view path)
{
	return view_is(path, "/ping") || view_is(path, "/ready");
}

bool auth_check(struct app *app, struct http_exchange *x)
{
	struct view token = view_of(app->options->access_token);
	struct view given = VIEW_NONE;

	if (token.len == 0 || is_open(http_path(x)))
		return true;
	if (http_header(x, AUTH_HEADER, &given) && bytes_equal_secret(token, given))
		return true;
	http_reply(x, 401, "application/json", view_of(refusal));
	return false;
}
