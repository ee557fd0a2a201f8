/*
 * codec/warden_mounts.h - what a sandbox's root is made of, as the server tells the warden.
 *
 * A create that wants more than the plain host image carries a sealed memfd with one of these:
 * fixed-layout records, little-endian, no pointers, every count and string checked by the parser.
 * Layers have numbers and volumes have numbers or an index into the operator's allow-list: no path
 * of the host is ever named from outside.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct buf;
struct err;

#define WARDEN_LAYERS_MAX  256
#define WARDEN_VOLUMES_MAX 64
#define WARDEN_PATH_MAX	   1024 /* with its NUL */

enum warden_volume_kind {
	WARDEN_VOLUME_NAMED = 1, /* volumes/<number>/data of the state directory */
	WARDEN_VOLUME_HOST,	 /* below allowed_host_paths[number], counted from 0 */
	WARDEN_VOLUME_MOUNTED, /* ossfs/<number> of the state directory: a mount of the supervisor's
				*/
};

struct warden_volume {
	uint32_t kind;
	uint32_t read_only;
	uint64_t number;
	/* Relative, "" = the volume itself; no "..", resolved beneath it with no link followed out,
	 * made if it is missing. */
	char sub_path[WARDEN_PATH_MAX];
	char mount_path[WARDEN_PATH_MAX]; /* absolute, inside the sandbox */
};

struct warden_mounts {
	bool host_base; /* the host image lies below the layers */
	size_t layers_n, volumes_n;
	uint64_t layers[WARDEN_LAYERS_MAX]; /* lowest first */
	struct warden_volume volumes[WARDEN_VOLUMES_MAX];
};

/* Appends the file's bytes. */
osb_must_check int warden_mounts_format(const struct warden_mounts *m, struct buf *out,
					struct err *e);

/* -EPROTO with a sentence if anything is not as it must be: counts, kinds, NULs, absolute and clean
 * mount paths, relative sub paths without "..". */
osb_must_check int warden_mounts_parse(struct view file, struct warden_mounts *ret, struct err *e);
