/*
 * server/app.h - what the server's parts share.
 */
#pragma once

#include <stddef.h>

struct config;
struct http_proxies;
struct http_server;
struct jobs;
struct loop;
struct runtime;
struct sandboxes;
struct store;

struct app {
	struct loop *loop;
	const struct config *config;
	struct store *store;
	struct jobs *jobs;
	struct runtime *runtime;
	struct sandboxes *sandboxes;
	struct http_server *http;
	struct http_proxies *proxies;
	size_t requests; /* under way */
};
