/*
 * server/page.h - lists are answered page by page: which page is asked for, and what is said of it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct failure;
struct json_writer;

struct page {
	uint64_t number; /* from 1 */
	uint64_t size;
};

#define PAGE_SIZE_MAX 200
#define PAGE_FIRST    ((struct page){.number = 1, .size = 20})

/* A parameter of the query: 1 if it was `page` or `pageSize`, 0 if it is another's, -1 with *f. */
osb_must_check int page_parameter(struct page *p, struct view name, struct view value,
				  struct failure *f);

bool page_holds(const struct page *p, uint64_t index); /* of what the filter lets through */

/* The member `pagination`. */
void page_write(struct json_writer *w, const struct page *p, uint64_t total);
