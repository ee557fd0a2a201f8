/*
 * sdk/fail.c - see fail.h.
 */
#include "sdk/fail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "codec/http1.h"
#include "codec/json.h"

const char *osb_code_name(osb_code code)
{
	static const char *const names[] = {
		"ok",
		"invalid argument",
		"cannot connect",
		"TLS failure",
		"timed out",
		"cancelled",
		"protocol error",
		"local I/O failure",
		"unauthorized",
		"not found",
		"conflict",
		"busy",
		"not supported",
		"refused",
		"server error",
		"the sandbox has ended",
	};
	int i = -(int)code;

	return i >= 0 && i < (int)ARRAY_LEN(names) ? names[i] : "unknown";
}

void fail_none(osb_error *e)
{
	if (e)
		*e = (osb_error){.code = OSB_OK};
}

/* One line: what the server says may be anything. */
static void one_line(char *text)
{
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = ' ';
	for (size_t n = strlen(text); n > 0 && text[n - 1] == ' '; n--)
		text[n - 1] = '\0';
}

int fail(osb_error *e, osb_code code, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return (int)code;
	e->code = code;
	va_start(ap, fmt);
	(void)vsnprintf(e->message, sizeof(e->message), fmt, ap);
	va_end(ap);
	one_line(e->message);
	return (int)code;
}

int fail_err(osb_error *e, const struct err *why)
{
	static const struct {
		int number;
		osb_code code;
	} codes[] = {
		{ECONNREFUSED, OSB_ERR_CONNECT},  {EHOSTUNREACH, OSB_ERR_CONNECT},
		{ENETUNREACH, OSB_ERR_CONNECT},	  {ENOENT, OSB_ERR_CONNECT},
		{EADDRNOTAVAIL, OSB_ERR_CONNECT}, {EACCES, OSB_ERR_CONNECT},
		{ECONNRESET, OSB_ERR_CONNECT},	  {EPIPE, OSB_ERR_CONNECT},
		{ETIMEDOUT, OSB_ERR_TIMEOUT},	  {ECANCELED, OSB_ERR_CANCELLED},
		{EPROTO, OSB_ERR_PROTOCOL},	  {EINVAL, OSB_ERR_INVALID},
		{EKEYREJECTED, OSB_ERR_TLS},	  {E2BIG, OSB_ERR_PROTOCOL},
	};

	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		if (why->code == -codes[i].number)
			return fail(e, codes[i].code, "%s", why->msg);
	return fail(e, OSB_ERR_IO, "%s", why->msg);
}

static osb_code code_of(int status)
{
	switch (status) {
	case 401:
	case 403:
		return OSB_ERR_UNAUTHORIZED;
	case 404:
		return OSB_ERR_NOT_FOUND;
	case 409:
	case 412:
		return OSB_ERR_CONFLICT;
	case 429:
	case 503:
		return OSB_ERR_BUSY;
	case 501:
		return OSB_ERR_UNSUPPORTED;
	default:
		return status >= 500 ? OSB_ERR_SERVER : OSB_ERR_REFUSED;
	}
}

static struct view member(const struct json *v, const char *key)
{
	struct view text = VIEW_NONE;

	(void)json_str(json_get(v, key), &text);
	return text;
}

/* {"code","message"}, the same in {"detail"}, FastAPI's list of details, or {"error"}. */
static bool read_envelope(const struct json *v, struct view *ret_code, struct view *ret_message)
{
	const struct json *detail = json_get(v, "detail");

	*ret_code = member(v, "code");
	*ret_message = member(v, "message");
	if (detail && !ret_message->len) {
		if (json_kind(detail) == JSON_ARRAY)
			*ret_message = member(json_at(detail, 0), "msg");
		else if (!json_str(detail, ret_message)) {
			*ret_code = member(detail, "code");
			*ret_message = member(detail, "message");
		}
	}
	if (!ret_message->len)
		*ret_message = member(v, "error");
	return ret_message->len > 0 || ret_code->len > 0;
}

int fail_answer(osb_error *e, int status, struct view body)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	struct view code = VIEW_NONE, message = VIEW_NONE;
	struct err ignored = ERR_NONE;

	if (!e)
		return (int)code_of(status);
	e->http_status = status;
	if (json_parse(body, 0, &v, &ignored) < 0 || !read_envelope(v, &code, &message))
		message = view_trim(body);
	snprintf(e->api_code, sizeof(e->api_code), VIEW_FMT, VIEW_ARG(code));
	one_line(e->api_code);
	if (message.len)
		return fail(e, code_of(status), VIEW_FMT, VIEW_ARG(view_first(message, 470)));
	return fail(e, code_of(status), "HTTP %d %s", status, http1_reason(status));
}
