/*
 * A URL that is understood is made of its own parts, and means the same when it is written again.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/http_url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(1u << 20);
	struct http_url u, again;
	struct err e = ERR_NONE;

	if (http_url_parse(view_mem(data, size), &u, &e) < 0)
		return 0;
	must(u.port > 0 && u.host[0] && u.target.len > 0 && u.target.p[0] == '/');
	must(strpbrk(u.host, "/@?#[] \r\n") == NULL);
	if (buf_printf(&text, "%s://" VIEW_FMT VIEW_FMT, u.tls ? "https" : "http",
		       VIEW_ARG(u.authority), VIEW_ARG(u.target)) < 0)
		return 0;
	must(http_url_parse(buf_view(&text), &again, &e) == 0);
	must(strcmp(u.host, again.host) == 0 && u.port == again.port && u.tls == again.tls);
	must(view_eq(u.target, again.target) && view_eq(u.authority, again.authority));
	return 0;
}
