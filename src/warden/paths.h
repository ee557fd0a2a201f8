/*
 * warden/paths.h - where things are inside the warden's own small root.
 */
#pragma once

#include "box/setup.h"

#define PATHS_STATE    "/state"
#define PATHS_NEW_ROOT "/" SETUP_ABOVE "/new"	 /* as it is, for mounts do not follow links */
#define PATHS_SHARED   "/" SETUP_ABOVE "/shared" /* see box/shared.h */
#define PATHS_CGROUP   "/sys/fs/cgroup"
#define PATHS_IMAGES   PATHS_STATE "/images"
#define PATHS_VOLUMES  PATHS_STATE "/volumes"
#define PATHS_MOUNTED  PATHS_STATE "/ossfs" /* what the supervisor mounts for sandboxes */
#define PATHS_HOSTS    "/hosts"		    /* the allowed host paths, by number */
#define PATHS_PARENTS  "/parents"	    /* the directories that these are in */
#define PATHS_LAYERS   "layers"		    /* of a box: what its overlays write to */
