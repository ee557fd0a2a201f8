/*
 * warden/paths.c - image names to directories: only names that the warden knows.
 */
#include "warden/paths.h"

#include <stddef.h>
#include <string.h>

const char *paths_image_root(const char *image)
{
	return strcmp(image, "host") == 0 ? PATHS_STATE "/images/host/rootfs" : NULL;
}

const char *paths_image_usr(const char *image)
{
	return strcmp(image, "host") == 0 ? "/usr" : NULL;
}
