/*
 * codec/json_indent.h - JSON for people to read.
 */
#pragma once

#include "base/macro.h"
#include "base/view.h"

struct buf;

/* Appends `text`, which is JSON already, with two spaces a level and a line end behind it. */
osb_must_check int json_indent(struct view text, struct buf *out);
