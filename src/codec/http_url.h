/*
 * codec/http_url.h - where an http or https URL leads, and what is asked for there.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct err;

#define HTTP_URL_HOST_MAX 254

struct http_url {
	bool tls;
	char host[HTTP_URL_HOST_MAX]; /* a name in lower case or an address, without brackets */
	bool is_address, v6;
	uint8_t address[16];
	uint16_t port;
	struct view authority; /* as it was written: the Host header */
	struct view target;    /* path and query as they were written; "/" if there are none */
};

/* Its views are views of `text`.  -EINVAL with a sentence: another scheme, user names, no host, a
 * fragment, bytes that have no place there. */
osb_must_check int http_url_parse(struct view text, struct http_url *ret, struct err *e);
