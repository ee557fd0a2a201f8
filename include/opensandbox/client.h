/*
 * opensandbox/client.h - where the server is, and how it is asked.
 *
 * A client keeps connections open and uses them again.  It may be used by any number of threads at
 * once; so may everything made from it.  A call that waits belongs to the thread that made it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opensandbox/error.h>
#include <opensandbox/visibility.h>

OSB_BEGIN

typedef struct osb_client osb_client;
typedef struct osb_cancel osb_cancel;

#define OSB_ID_MAX 80 /* room that the id of something in a sandbox needs */

typedef struct osb_pair {
	const char *name, *value;
} osb_pair;

/*
 * Whatever is NULL or 0 comes from the environment (OPEN_SANDBOX_API_KEY, _DOMAIN, _PROTOCOL,
 * _REQUEST_TIMEOUT, _USE_SERVER_PROXY), then from the [connection] section of the configuration
 * file, then from what stands behind it here.
 */
typedef struct osb_config {
	const char *domain;   /* "localhost:8080"; "https://host/base" and "unix:/path" too */
	const char *protocol; /* "http" or "https", where the domain does not say; "http" */
	const char *api_key;  /* none */
	uint32_t timeout_ms;  /* of one request, streams excepted: 30000 */
	int use_server_proxy; /* 1 = ask for endpoints that lead through the server, -1 = do not */
	const char *config_file; /* ~/.opensandbox/config.toml, if it is there; "" = none */
	bool no_environment;	 /* do not look at the environment */
	const char *ca_file;	 /* PEM; the system's authorities */
	int retries;		 /* of calls that may be made twice: 3; -1 = none */
	const char *user_agent;	 /* "opensandbox-c/VERSION" */
	const osb_pair *headers; /* sent with every request */
	size_t headers_n;
} osb_config;

/* `config` may be NULL.  Nothing is sent yet. */
OSB_API int osb_client_new(const osb_config *config, osb_client **ret, osb_error *e);
OSB_API void osb_client_free(osb_client *c); /* accepts NULL; after everything made from it */

/* The server's address as it was understood, for messages: "http://localhost:8080". */
OSB_API const char *osb_client_url(const osb_client *c);

/* How one call is made; NULL: as the client is configured. */
typedef struct osb_call {
	uint32_t timeout_ms;	/* 0 = the client's; OSB_FOREVER = none */
	osb_cancel *cancel;	/* or NULL */
	const char *request_id; /* sent as X-Request-ID, or NULL */
} osb_call;

#define OSB_FOREVER UINT32_MAX

/* Ends a call from another thread or from a signal handler. */
OSB_API osb_cancel *osb_cancel_new(void);
OSB_API void osb_cancel_now(osb_cancel *c); /* async-signal-safe; stays so until reset */
OSB_API void osb_cancel_reset(osb_cancel *c);
OSB_API void osb_cancel_free(osb_cancel *c); /* accepts NULL */

/*
 * Any request of the lifecycle API, for what has no function here: `path` is "/sandboxes?page=2".
 * *ret_json is the answer's body, to be freed with osb_free(); "" if it has none.
 */
OSB_API int osb_request(osb_client *c, const char *method, const char *path, const char *body_json,
			const osb_call *call, char **ret_json, osb_error *e);
OSB_API void osb_free(void *p); /* accepts NULL */

/* Does the server answer, and what is it?  *ret_version is freed with osb_free(). */
OSB_API int osb_server_version(osb_client *c, const osb_call *call, char **ret_version,
			       osb_error *e);

OSB_END
