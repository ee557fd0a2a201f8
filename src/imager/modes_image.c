/*
 * imager/modes_image.c - opensandbox-image: files itself, registries through another program.
 *
 * A snapshot waits for this program's start, and a registry client needs thirty libraries: whoever
 * works on files neither loads them nor has them at hand.
 */
#include "base/macro.h"
#include "imager/bucket.h"
#include "imager/files.h"
#include "imager/modes.h"

const struct mode modes[] = {
	{"fetch", "speaks with registries: pulls and pushes; no rights but those of its user",
	 "opensandbox-registry", NULL, NULL},
	{"push", "the same", "opensandbox-registry", NULL, NULL},
	{"files", "unpacks, packs and removes layers; root over those files, no network", NULL,
	 files_confine, files_run},
	{"bucket", "mounts object stores by the program that is installed for it; root", NULL,
	 bucket_confine, bucket_run},
};
const size_t modes_n = ARRAY_LEN(modes);
