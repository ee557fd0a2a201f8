/*
 * server/image_import.h - images from archives that clients send.
 */
#pragma once

#include "base/macro.h"

struct app;
struct failure;
struct image;

/* The images of the archive, newest names included; NULL and 0 on failure. */
typedef void image_import_fn(void *arg, struct image **images, size_t n, const struct failure *f);

/* images/uploads/UPLOAD, which stays the caller's.  `key` is a full name for its (only) image, or
 * NULL.  Under way until fn is called. */
void image_import(struct app *app, const char *upload, const char *key, image_import_fn *fn,
		  void *arg);
