/*
 * server/registries.h - what a job that speaks with registries is told of them.
 */
#pragma once

struct config;
struct json_writer;

/* Members "registries" and, if `auth` (JSON) is given, "auth" of a request. */
void registries_put(struct json_writer *w, const struct config *config, const char *auth);
