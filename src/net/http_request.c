/*
 * net/http_request.c - see http_request.h.
 */
#include "net/http_request.h"

#include <errno.h>
#include <inttypes.h>

#include "base/buf.h"

static bool legal_target(struct view target)
{
	for (size_t i = 0; i < target.len; i++)
		if ((unsigned char)target.p[i] <= ' ' || target.p[i] == 0x7f)
			return false;
	return target.len > 0;
}

static int format_header(struct buf *out, const struct http1_header *h, bool parsed)
{
	if (!parsed && (!http1_is_token(h->name) || !http1_is_field_value(h->value)))
		return -EINVAL;
	return http1_append_header(out, h);
}

static int format_framing(struct buf *out, struct view method, int64_t length)
{
	bool expects_body =
		view_is(method, "POST") || view_is(method, "PUT") || view_is(method, "PATCH");

	if (length < 0)
		return buf_append_str(out, "Transfer-Encoding: chunked\r\n");
	if (length > 0 || expects_body)
		return buf_printf(out, "Content-Length: %" PRId64 "\r\n", length);
	return 0;
}

int http_request_format(struct buf *out, struct view method, struct view target,
			const struct http1_header *headers, size_t headers_n, int64_t length,
			unsigned flags)
{
	bool upgrades = false;
	int r;

	if (!http1_is_token(method) || view_is(method, "CONNECT") || !legal_target(target))
		return -EINVAL;
	r = buf_append_view(out, method);
	r = r ? r : buf_append_char(out, ' ');
	r = r ? r : buf_append_view(out, target);
	r = r ? r : buf_append_str(out, " HTTP/1.1\r\n");
	for (size_t i = 0; i < headers_n && r == 0; i++) {
		upgrades |= view_iis(headers[i].name, "Upgrade");
		r = format_header(out, &headers[i], flags & HTTP_REQUEST_PARSED);
	}
	/* To keep it is what HTTP/1.1 does unasked. */
	if (upgrades)
		r = r ? r : buf_append_str(out, "Connection: Upgrade\r\n");
	else if (!(flags & HTTP_REQUEST_KEEPS))
		r = r ? r : buf_append_str(out, "Connection: close\r\n");
	r = r ? r : format_framing(out, method, length);
	return r ? r : buf_append_str(out, "\r\n");
}
