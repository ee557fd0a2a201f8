/*
 * server/list_filter.h - which sandboxes a list is asked for: states, metadata, page.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"
#include "server/page.h"

struct arena;
struct failure;
struct sandbox;

#define LIST_FILTER_LABELS_MAX 64

struct list_filter {
	unsigned states; /* bit per state; 0 = all */
	bool no_state;	 /* a state was named that does not exist */
	struct list_label {
		struct view key, value;
	} labels[LIST_FILTER_LABELS_MAX];
	size_t labels_n;
	struct page page;
};

/* Strings of *ret live in the arena. */
osb_must_check int list_filter_read(struct arena *a, struct view query, struct list_filter *ret,
				    struct failure *f);

bool list_filter_matches(const struct list_filter *q, const struct sandbox *b);
