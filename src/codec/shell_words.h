/*
 * codec/shell_words.h - splits a command line as a shell would: blanks, quotes, backslashes;
 * nothing is expanded.
 */
#pragma once

#include "base/macro.h"
#include "base/view.h"

struct strv;

/* Appends the words.  -EINVAL when a quote is not closed or the text ends in a backslash. */
osb_must_check int shell_words_split(struct view text, struct strv *ret);
