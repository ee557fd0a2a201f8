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
#define WARDEN_NAME_MAX	   255	/* of one name in a path */

/* The largest file: to be refused above, before it is read. */
#define WARDEN_MOUNTS_MAX_BYTES (16 + WARDEN_LAYERS_MAX * 8 + WARDEN_VOLUMES_MAX * 2064)

enum warden_volume_kind {
	WARDEN_VOLUME_NAMED = 1, /* volumes/<number>/data of the state directory */
	WARDEN_VOLUME_HOST,	 /* below allowed_host_paths[number], counted from 0 */
	WARDEN_VOLUME_MOUNTED,	 /* ossfs/<number> of the state directory: made by the supervisor */
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

/* -EPROTO with a sentence if anything is not as it must be: counts, kinds, NULs, layers or mount
 * paths that are named twice, and the paths by the rules below.  *ret (large: not for the stack)
 * may be changed also on failure. */
osb_must_check int warden_mounts_parse(struct view file, struct warden_mounts *ret, struct err *e);

/* Puts a layer on top.  One that was there already moves up: all it holds hides what it held. */
osb_must_check int warden_mounts_add_layer(struct warden_mounts *m, uint64_t number, struct err *e);

/* What the parser takes: absolute, one slash between names, none of them "." or "..", not "/", and
 * not in /proc, /sys or /dev. */
bool warden_mounts_path_ok(struct view path);
bool warden_mounts_sub_path_ok(struct view path); /* the same, relative; "" is all of the volume */
