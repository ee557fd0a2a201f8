/*
 * opensandbox/sandbox.h - sandboxes: made, found, looked at, paused, renewed, ended.
 *
 * Structures that the library returns are freed with the function beside them.  They may grow at
 * their ends in later versions; nobody but the library makes them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opensandbox/client.h>
#include <opensandbox/error.h>
#include <opensandbox/visibility.h>

OSB_BEGIN

typedef struct osb_sandbox osb_sandbox;

#define OSB_PORT_EXEC	44772
#define OSB_PORT_EGRESS 18080

/* ---- making and finding ---- */

/* Begin with OSB_CREATE_INIT: later versions add members. */
typedef struct osb_create {
	size_t size;
	const char *image; /* or snapshot_id */
	const char *image_username, *image_password;
	const char *snapshot_id;
	int64_t timeout_s;	       /* it ends by itself after so long; 0 = 600, OSB_NEVER */
	const char *const *entrypoint; /* NULL-terminated; NULL = one that waits for ever */
	const osb_pair *env;
	size_t env_n;
	const osb_pair *metadata;
	size_t metadata_n;
	const osb_pair *resource_limits; /* NULL = cpu 1, memory 2Gi */
	size_t resource_limits_n;
	const osb_pair *extensions;
	size_t extensions_n;
	const char *network_policy; /* these are JSON texts, or NULL */
	const char *volumes;
	const char *lifecycle;
	const char *platform;
	const char *resource_requests;
	bool secure_access, credential_proxy;
	bool skip_ready;	   /* do not wait until it answers */
	uint32_t ready_timeout_ms; /* 0 = 30000 */
} osb_create;

#define OSB_CREATE_INIT                                                                            \
	{                                                                                          \
		.size = sizeof(osb_create)                                                         \
	}
#define OSB_NEVER (-1)

/* A new sandbox that answers.  If it does not come up it is deleted again. */
OSB_API int osb_sandbox_create(osb_client *c, const osb_create *what, const osb_call *call,
			       osb_sandbox **ret, osb_error *e);

/* One that exists.  Nothing is asked before it is used. */
OSB_API int osb_sandbox_open(osb_client *c, const char *id, osb_sandbox **ret, osb_error *e);

OSB_API void osb_sandbox_free(osb_sandbox *s); /* accepts NULL; the sandbox itself lives on */
OSB_API const char *osb_sandbox_id(const osb_sandbox *s);

/* Waits until commands can be run in it; fails at once if it has ended. */
OSB_API int osb_sandbox_wait_ready(osb_sandbox *s, uint32_t timeout_ms, const osb_call *call,
				   osb_error *e);

/* ---- looking ---- */

typedef struct osb_sandbox_info {
	const char *id;
	const char *state;	       /* "Running", "Paused", "Pending", "Failed", ... */
	const char *reason, *message;  /* or NULL */
	const char *image;	       /* as it was asked for; NULL if made from a snapshot */
	const char *snapshot_id;       /* or NULL */
	const char *created_at;	       /* RFC 3339 */
	const char *expires_at;	       /* or NULL = never */
	const char *const *entrypoint; /* NULL-terminated */
	const osb_pair *metadata;
	size_t metadata_n;
	const char *json; /* the whole object as the server wrote it */
} osb_sandbox_info;

OSB_API int osb_sandbox_get(osb_sandbox *s, const osb_call *call, osb_sandbox_info **ret,
			    osb_error *e);
OSB_API void osb_sandbox_info_free(osb_sandbox_info *i); /* accepts NULL */

typedef struct osb_list {
	const char *const *states; /* NULL-terminated; any of them; NULL = all */
	const osb_pair *metadata;  /* all of them */
	size_t metadata_n;
	int page, page_size; /* 0 = the server's: 1, 20 */
} osb_list;

typedef struct osb_sandbox_page {
	osb_sandbox_info *const *items;
	size_t items_n;
	int page, page_size, total_items, total_pages;
	bool has_next;
	const char *json;
} osb_sandbox_page;

OSB_API int osb_sandbox_list(osb_client *c, const osb_list *filter, const osb_call *call,
			     osb_sandbox_page **ret, osb_error *e);
OSB_API void osb_sandbox_page_free(osb_sandbox_page *p); /* accepts NULL */

/* Where a port can be reached.  Every header must be sent with every request. */
typedef struct osb_endpoint {
	const char *endpoint; /* "host:port/path", without a scheme */
	const char *url;      /* the same with one */
	const osb_pair *headers;
	size_t headers_n;
	const char *json;
} osb_endpoint;

/* `expires_unix_s`: a signed route that ends then; 0 = an ordinary one. */
OSB_API int osb_sandbox_endpoint(osb_sandbox *s, uint16_t port, int64_t expires_unix_s,
				 const osb_call *call, osb_endpoint **ret, osb_error *e);
OSB_API void osb_endpoint_free(osb_endpoint *p); /* accepts NULL */

typedef struct osb_metrics {
	double cpu_count, cpu_used_percent, memory_total_mib, memory_used_mib;
	int64_t timestamp_ms;
} osb_metrics;

OSB_API int osb_sandbox_metrics(osb_sandbox *s, const osb_call *call, osb_metrics *ret,
				osb_error *e);

/* A sample about every two seconds until the handler returns non-zero, the call is cancelled or
 * the sandbox ends. */
typedef int osb_metrics_fn(void *arg, const osb_metrics *m);
OSB_API int osb_sandbox_watch_metrics(osb_sandbox *s, osb_metrics_fn *fn, void *arg,
				      const osb_call *call, osb_error *e);

/* 0 = it answers. */
OSB_API int osb_sandbox_ping(osb_sandbox *s, const osb_call *call, osb_error *e);

/* ---- changing ---- */

OSB_API int osb_sandbox_pause(osb_sandbox *s, const osb_call *call, osb_error *e);
OSB_API int osb_sandbox_resume(osb_sandbox *s, const osb_call *call, osb_error *e);
OSB_API int osb_sandbox_kill(osb_sandbox *s, const osb_call *call, osb_error *e);

/* It ends so many seconds from now.  *ret_expires_at (may be NULL) is freed with osb_free(). */
OSB_API int osb_sandbox_renew(osb_sandbox *s, int64_t timeout_s, const osb_call *call,
			      char **ret_expires_at, osb_error *e);

/* Sets metadata; a NULL value removes a name. */
OSB_API int osb_sandbox_set_metadata(osb_sandbox *s, const osb_pair *v, size_t n,
				     const osb_call *call, osb_sandbox_info **ret, osb_error *e);

OSB_END
