/*
 * server/volume.h - a directory that a sandbox asks for: of the host, of this server, of a bucket.
 *
 * Everything in it was checked when the request was read; nothing in it was looked up yet but the
 * number of a named volume.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/strv.h"

struct err;
struct failure;
struct json;
struct json_writer;
struct runtime_volume;

enum volume_kind { VOLUME_HOST, VOLUME_NAMED, VOLUME_OSSFS, VOLUME_KINDS_ };

/* Where an object store is, and who may read it.  The secret is never written anywhere. */
struct volume_bucket {
	char *bucket, *endpoint;
	char *version; /* "1.0" or "2.0" */
	struct strv options;
	char *key_id, *key_secret;
};

struct volume {
	enum volume_kind kind;
	char *name;	  /* of this mount, in the request */
	char *mount_path; /* absolute and clean */
	char *below;	  /* relative, "" = all of it */
	bool read_only;
	/* host: an index into storage.allowed_host_paths.  named, ossfs: a number of the database,
	 * 0 before the create has looked. */
	uint64_t number;
	char *path;	   /* host: as asked */
	char *claim;	   /* named: the volume's own name */
	bool must_exist;   /* named: createIfNotExists was false */
	bool remove_after; /* named: deleteOnSandboxTermination */
	bool made;	   /* named: did not exist before this request */
	struct volume_bucket bucket;
};

struct volumes_list {
	struct volume *v;
	size_t n;
};

void volumes_list_done(struct volumes_list *l);
void volume_forget_keys(struct volume *v);		 /* of a bucket */
struct volume *volumes_list_add(struct volumes_list *l); /* an empty one */

/* As a member of the sandbox's spec in the store: an array, left out when empty. */
void volumes_list_format(struct json_writer *w, const char *key, const struct volumes_list *l);
void volumes_list_parse(const struct json *array, struct volumes_list *ret);

/* For the runtime.  The array is the caller's, its strings are the list's. */
struct runtime_volume *volumes_list_runtime(const struct volumes_list *l);

/* What the runtime said when a volume could not be mounted; false if it was not a volume. */
bool volumes_list_failure(const struct volumes_list *l, const struct err *e, struct failure *f);
