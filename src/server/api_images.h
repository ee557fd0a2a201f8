/*
 * server/api_images.h - what the files of handlers for images share.
 */
#pragma once

#include <stddef.h>

#include "base/macro.h"
#include "base/view.h"

struct app;
struct failure;
struct http_exchange;
struct image;

/* The image that "{id}" names, by id or name; NULL: then 404 was answered. */
struct image *api_image(struct http_exchange *x, struct app *app);

/* The full name that is meant; the host image has none. */
osb_must_check int api_image_key(struct view name, char *ret, size_t size, struct failure *f);
