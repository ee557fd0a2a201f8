/*
 * image/registry_url.c - URLs as libcurl reads them: the judge must see what the traveller sees.
 */
#include "image/registry_url.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

DEFINE_CLEANUP(CURLU *, curl_url_cleanup)

static void curl_freep(char **p)
{
	curl_free(*p);
}

static int read_origin(CURLU *u, struct registry_origin *ret, struct err *e)
{
	osb_cleanup(curl_freep) char *scheme = NULL;
	osb_cleanup(curl_freep) char *host = NULL;
	osb_cleanup(curl_freep) char *port = NULL;
	osb_cleanup(curl_freep) char *user = NULL;
	int n;

	if (curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) ||
	    curl_url_get(u, CURLUPART_HOST, &host, 0) || !host[0])
		return err_set(e, -EBADMSG, "a URL without a host");
	if (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)
		return err_set(e, -EBADMSG, "a URL of the scheme '%.20s'", scheme);
	if (curl_url_get(u, CURLUPART_USER, &user, 0) == CURLUE_OK)
		return err_set(e, -EBADMSG, "a URL with a user name");
	(void)curl_url_get(u, CURLUPART_PORT, &port, CURLU_NO_DEFAULT_PORT);
	ret->tls = strcmp(scheme, "https") == 0;
	n = snprintf(ret->host, sizeof(ret->host), "%s%s%s", host, port ? ":" : "",
		     port ? port : "");
	if (n < 0 || (size_t)n >= sizeof(ret->host))
		return err_set(e, -EBADMSG, "a URL with a host of %d characters", n);
	for (char *p = ret->host; *p; p++)
		if (*p >= 'A' && *p <= 'Z')
			*p = (char)(*p + ('a' - 'A'));
	return 0;
}

int registry_origin_of(const char *url, struct registry_origin *ret, struct err *e)
{
	osb_cleanup(curl_url_cleanupp) CURLU *u = curl_url();

	if (!u || curl_url_set(u, CURLUPART_URL, url, 0))
		return err_set(e, -EBADMSG, "a malformed URL");
	return read_origin(u, ret, e);
}

bool registry_origin_eq(const struct registry_origin *a, const struct registry_origin *b)
{
	return a->tls == b->tls && strcmp(a->host, b->host) == 0;
}

char *registry_url_join(const char *base, const char *location)
{
	osb_cleanup(curl_url_cleanupp) CURLU *u = curl_url();
	osb_cleanup(curl_freep) char *joined = NULL;

	if (!u || curl_url_set(u, CURLUPART_URL, base, 0) ||
	    curl_url_set(u, CURLUPART_URL, location, 0) ||
	    curl_url_set(u, CURLUPART_FRAGMENT, NULL, 0) ||
	    curl_url_get(u, CURLUPART_URL, &joined, 0))
		return NULL;
	return mem_strdup(joined);
}
