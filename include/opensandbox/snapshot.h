/*
 * opensandbox/snapshot.h - what a sandbox had written at one moment.
 *
 * A sandbox is restored by osb_create.snapshot_id.
 */
#pragma once

#include <opensandbox/sandbox.h>

OSB_BEGIN

typedef struct osb_snapshot {
	const char *id, *sandbox_id;
	const char *name;			   /* or NULL */
	const char *state;			   /* "Creating", "Ready", "Failed", "Deleting" */
	const char *reason, *message, *created_at; /* or NULL */
	const char *json;
} osb_snapshot;

typedef struct osb_snapshot_page {
	osb_snapshot *const *items;
	size_t items_n;
	int page, page_size, total_items, total_pages;
	bool has_next;
	const char *json;
} osb_snapshot_page;

/* `name` may be NULL.  It is taken in the background: osb_snapshot_wait(). */
OSB_API int osb_snapshot_create(osb_sandbox *s, const char *name, const osb_call *call,
				osb_snapshot **ret, osb_error *e);
OSB_API int osb_snapshot_get(osb_client *c, const char *id, const osb_call *call,
			     osb_snapshot **ret, osb_error *e);

/* Until it is Ready, or OSB_ERR_ENDED when it has failed.  0 = 120000 ms; *ret may be NULL. */
OSB_API int osb_snapshot_wait(osb_client *c, const char *id, uint32_t timeout_ms,
			      const osb_call *call, osb_snapshot **ret, osb_error *e);

/* Filters may be NULL, `page` and `page_size` 0. */
OSB_API int osb_snapshot_list(osb_client *c, const char *sandbox_id, const char *name,
			      const char *state, int page, int page_size, const osb_call *call,
			      osb_snapshot_page **ret, osb_error *e);
OSB_API int osb_snapshot_delete(osb_client *c, const char *id, const osb_call *call, osb_error *e);

OSB_API void osb_snapshot_free(osb_snapshot *p);	   /* accepts NULL */
OSB_API void osb_snapshot_page_free(osb_snapshot_page *p); /* accepts NULL */

OSB_END
