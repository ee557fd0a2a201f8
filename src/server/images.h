/*
 * server/images.h - image references to what the runtime has.
 */
#pragma once

struct config;

/* "host", through an alias if there is one; NULL when there is no such image here. */
const char *images_resolve(const struct config *config, const char *uri);
