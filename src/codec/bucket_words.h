/*
 * codec/bucket_words.h - what of a request may reach the program that mounts a bucket.
 *
 * That program runs with rights over the host, so both sides look: the server, which knows the
 * client, and the job that starts the program, which does not trust the server.
 */
#pragma once

#include <stdbool.h>

#include "base/view.h"

#define BUCKET_NAME_MIN 3
#define BUCKET_NAME_MAX 63
#define BUCKET_KEY_MAX	256

/* Letters, digits, '-' and '.', neither of these first; its length is not looked at. */
bool bucket_name_ok(struct view name);

/* A host name, with a port and a scheme if need be. */
bool bucket_endpoint_ok(struct view endpoint);

/* An id or a secret. */
bool bucket_key_ok(struct view key);

/* "name" or "name=value", a name of a list of ours: none takes a path. */
bool bucket_option_ok(struct view option);
