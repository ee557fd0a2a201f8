/*
 * codec/sha256_cpu.h - SHA-256 blocks by the processor's own instructions, where it has them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool sha256_cpu_can(void);

/* `n` blocks of 64 bytes into the state `h`; `constants` are the 64 of the standard. */
void sha256_cpu_add(uint32_t h[8], const unsigned char *blocks, size_t n,
		    const uint32_t constants[64]);
