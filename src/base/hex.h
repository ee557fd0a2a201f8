/*
 * base/hex.h - bytes as lower-case hexadecimal digits, and back.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/view.h"

/* Writes 2 * n digits and a NUL. */
void hex_format(const void *p, size_t n, char *ret);

/* Value of one digit (either case), or -1. */
int hex_digit(char c);

/* False unless `text` is exactly 2 * n digits. */
bool hex_parse(struct view text, void *ret, size_t n);
