/*
 * image/layer_unpack.h - a compressed archive becomes a directory, and its sums are known
 * afterwards.
 */
#pragma once

#include "base/macro.h"
#include "image/layer_apply.h"
#include "image/pipeline.h"

/* Told now and then, from the caller's thread. */
typedef void layer_progress_fn(void *arg, uint64_t plain_bytes);

struct layer_unpack {
	struct pipeline_source source;
	int root_fd;	/* borrowed; an empty directory, or with LAYER_PLAIN any */
	unsigned flags; /* enum layer_flags */
	struct layer_limits limits;
	layer_progress_fn *progress; /* or NULL */
	void *arg;
};

/* As layer_apply_feed() and pipeline_run().  After a failure the directory holds anything. */
osb_must_check int layer_unpack(const struct layer_unpack *u, struct pipeline_result *ret_sums,
				struct layer_totals *ret_totals, struct err *e);
