/*
 * server/image_keeper.h - which images go: those too many, too old, or asked to.
 *
 * Removing an image takes its names; its layers go when nothing else uses them.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"

struct app;
struct image;
struct image_keeper;

struct image_keeper *image_keeper_new(struct app *app);
void image_keeper_free(struct image_keeper *k); /* accepts NULL */

/* Everything is loaded: removes what no record names, and goes on with what was under way. */
void image_keeper_begin(struct image_keeper *k);

/* Bytes that would be free without it: of layers that nothing else uses. */
uint64_t image_own_bytes(struct app *app, const struct image *image);
