/*
 * image/host_text.h - the generated files of the host image.
 */
#pragma once

#include "base/macro.h"

struct err;
struct resolv_conf;

#define HOST_TEXT_USER_ID 1000 /* of "sandbox", for who does not want to be root */

osb_must_check int host_text_write(int root_fd, const struct resolv_conf *dns, struct err *e);
