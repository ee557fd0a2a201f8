/*
 * image/registry_blobs.h - the blobs of an image's layers, some at a time.
 */
#pragma once

#include "base/macro.h"

struct err;
struct oci_config;
struct oci_document;
struct registry;
struct registry_pull;

osb_must_check int registry_fetch_layers(struct registry *r, const struct registry_pull *p,
					 const struct oci_document *manifest,
					 const struct oci_config *config, struct err *e);
