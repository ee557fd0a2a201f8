/*
 * base/rand.h - random bytes from the kernel, and the ids made of them.
 */
#pragma once

#include <stddef.h>

#define RAND_HEX_LEN  32 /* without the NUL */
#define RAND_UUID_LEN 36

void rand_bytes(void *p, size_t n);
void rand_hex(char ret[RAND_HEX_LEN + 1]);   /* 32 lower-case hex digits */
void rand_uuid(char ret[RAND_UUID_LEN + 1]); /* UUID version 4 with hyphens */
