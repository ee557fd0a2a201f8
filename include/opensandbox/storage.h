/*
 * opensandbox/storage.h - images and volumes of a server of ours; others answer
 * OSB_ERR_NOT_FOUND.
 *
 * Lists and objects are the server's JSON, freed with osb_free(): see specs/images.yaml and
 * specs/volumes.yaml.
 */
#pragma once

#include <opensandbox/client.h>
#include <opensandbox/files.h>

OSB_BEGIN

/* ---- images ---- */

typedef struct osb_registry_auth {
	const char *username, *password;
} osb_registry_auth;

/* How far a pull is; non-zero stops watching (the pull goes on). */
typedef struct osb_pull_progress {
	const char *state;   /* "Pulling", ... */
	int64_t done, total; /* bytes; total -1 = unknown */
	const char *json;
} osb_pull_progress;
typedef int osb_pull_fn(void *arg, const osb_pull_progress *p);

OSB_API int osb_image_list(osb_client *c, int page, int page_size, const osb_call *call,
			   char **ret_json, osb_error *e);
OSB_API int osb_image_get(osb_client *c, const char *name, const osb_call *call, char **ret_json,
			  osb_error *e);
/* Waits until it is here; `auth` and `fn` may be NULL. */
OSB_API int osb_image_pull(osb_client *c, const char *name, const osb_registry_auth *auth,
			   osb_pull_fn *fn, void *arg, const osb_call *call, char **ret_json,
			   osb_error *e);
OSB_API int osb_image_delete(osb_client *c, const char *name, bool force, const osb_call *call,
			     osb_error *e);
/* `all`: also those that have a name. */
OSB_API int osb_image_prune(osb_client *c, bool all, const osb_call *call, char **ret_json,
			    osb_error *e);
/* An archive from a descriptor; `name` may be NULL where the archive has names. */
OSB_API int osb_image_import(osb_client *c, int fd, const char *name, const osb_transfer *transfer,
			     const osb_call *call, char **ret_json, osb_error *e);
/* As an OCI layout; a snapshot too, by its id. */
OSB_API int osb_image_export(osb_client *c, const char *name, int fd, const osb_transfer *transfer,
			     const osb_call *call, osb_error *e);
OSB_API int osb_snapshot_export(osb_client *c, const char *id, int fd, const osb_transfer *transfer,
				const osb_call *call, osb_error *e);
OSB_API int osb_image_push(osb_client *c, const char *name, const char *as,
			   const osb_registry_auth *auth, const osb_call *call, osb_error *e);

/* ---- volumes ---- */

OSB_API int osb_volume_list(osb_client *c, int page, int page_size, const osb_call *call,
			    char **ret_json, osb_error *e);
OSB_API int osb_volume_create(osb_client *c, const char *name, const osb_call *call,
			      char **ret_json, osb_error *e);
OSB_API int osb_volume_get(osb_client *c, const char *name, const osb_call *call, char **ret_json,
			   osb_error *e);
OSB_API int osb_volume_delete(osb_client *c, const char *name, const osb_call *call, osb_error *e);
/* Unpacks an archive into it. */
OSB_API int osb_volume_fill(osb_client *c, const char *name, int fd, const osb_transfer *transfer,
			    const osb_call *call, char **ret_json, osb_error *e);

OSB_END
