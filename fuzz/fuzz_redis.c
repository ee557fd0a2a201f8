/*
 * An answer is made of parts of its text and needs all of them; a URL is valid once written again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/redis.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check_url(struct view text)
{
	struct redis_url u, again;
	struct err e = ERR_NONE;
	char plain[600];

	if (redis_url_parse(text, &u, &e) < 0) {
		must(e.code < 0 && e.msg[0]);
		return;
	}
	must(u.host[0] && u.port);
	snprintf(plain, sizeof(plain),
		 strchr(u.host, ':') ? "redis://[%s]:%u/%u" : "redis://%s:%u/%u", u.host, u.port,
		 u.db);
	must(redis_url_parse(view_of(plain), &again, &e) == 0);
	must(strcmp(again.host, u.host) == 0 && again.port == u.port && again.db == u.db);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view in = view_mem(data, size);
	struct redis_reply r;
	ssize_t n;

	check_url(in);
	while (in.len && (n = redis_reply_parse(in, &r)) > 0) {
		must((size_t)n <= in.len);
		must(!r.text.len || (r.text.p > in.p && r.text.p + r.text.len <= in.p + n));
		must(redis_reply_parse(view_first(in, (size_t)n - 1), &r) == 0);
		in = view_skip(in, (size_t)n);
	}
	return 0;
}
