/*
 * codec/multipart_header.h - the headers of one part of a form.
 */
#pragma once

#include <stddef.h>

#include "base/macro.h"

struct err;
struct multipart_part;

/*
 * Reads the header lines in `text`, each ended by CRLF, the empty line included.  Quoted values are
 * unescaped in place, so *ret points into `text`.  -EINVAL with a sentence.
 */
osb_must_check int multipart_header_parse(char *text, size_t len, struct multipart_part *ret,
					  struct err *e);
