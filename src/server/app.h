/*
 * server/app.h - what the server's parts share.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct config;
struct egress_client;
struct http_proxies;
struct http_server;
struct image_keeper;
struct image_outs;
struct images;
struct jobs;
struct layers;
struct loop;
struct pulls;
struct resumes;
struct runtime;
struct sandboxes;
struct snapshots;
struct store;
struct tunnels;
struct volumes;

struct app {
	struct loop *loop;
	const struct config *config;
	struct store *store;
	struct jobs *jobs;
	struct layers *layers;
	struct images *images;
	struct pulls *pulls;
	struct image_outs *image_outs;
	struct image_keeper *image_keeper;
	struct volumes *volumes;
	struct runtime *runtime;
	struct egress_client *egress;
	struct sandboxes *sandboxes;
	struct snapshots *snapshots;
	struct http_server *http;
	struct http_proxies *proxies;
	struct tunnels *tunnels;
	struct resumes *resumes;
	size_t requests; /* under way */
	int64_t started_us;
};
