/*
 * warden/paths.h - where things are inside the warden's own small root.
 */
#pragma once

#define PATHS_STATE    "/state"
#define PATHS_NEW_ROOT "/new"
#define PATHS_SHARED   "/shared" /* see box/shared.h */
#define PATHS_CGROUP   "/sys/fs/cgroup"
#define PATHS_LAYERS   "layers" /* of a box: what its overlays write to */

/* Directory of an image's root; the host's /usr for the host image, else NULL. */
const char *paths_image_root(const char *image);
const char *paths_image_usr(const char *image);
