/*
 * server/platform.h - the processor, as images name it.
 */
#pragma once

static inline const char *platform_arch(void)
{
#if defined(__aarch64__)
	return "arm64";
#else
	return "amd64";
#endif
}
