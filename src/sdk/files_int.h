/*
 * sdk/files_int.h - permissions as the protocol writes them.
 */
#pragma once

#include <opensandbox/files.h>
#include <stdint.h>

struct json_writer;

/* 0755 is 755. */
int64_t file_mode_digits(unsigned mode);

/* The members "mode", "owner" and "group", as far as they were given. */
void file_mode_write(struct json_writer *w, const osb_file_mode *mode);
