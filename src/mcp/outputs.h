/*
 * mcp/outputs.h - what runs have written, kept for a while: an answer shows the beginning and the
 * end, the rest is read from here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/macro.h"

struct outputs;

#define OUTPUTS_RUNS	  32	      /* the latest ones */
#define OUTPUTS_RUN_BYTES (2u << 20)  /* of one; what is more is lost */
#define OUTPUTS_SHOWN	  (16u << 10) /* of one stream, at its beginning and again at its end */

struct outputs *outputs_new(void);
void outputs_free(struct outputs *o); /* accepts NULL */

/* Takes the content of `text`. */
void outputs_keep(struct outputs *o, const char *sandbox_id, const char *run_id, struct buf *text);

/* Appends at most `max` bytes from `from` on; *ret_total is how much there is.  False: it is not
 * known. */
osb_must_check bool outputs_read(struct outputs *o, const char *sandbox_id, const char *run_id,
				 uint64_t from, size_t max, struct buf *ret, uint64_t *ret_total);

/* One stream: its beginning and its end. */
struct excerpt {
	struct buf head, tail;
	uint64_t total;
};

void excerpt_init(struct excerpt *x);
void excerpt_done(struct excerpt *x);
void excerpt_add(struct excerpt *x, const char *text, size_t n);
uint64_t excerpt_left_out(const struct excerpt *x); /* bytes in the middle */
/* With a line in the middle that says what is missing. */
struct view excerpt_text(struct excerpt *x, const char *run_id, struct buf *room);
