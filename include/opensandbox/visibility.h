/* opensandbox/visibility.h - what the library exports. */
#pragma once

#define OSB_API __attribute__((visibility("default")))

#ifdef __cplusplus
#define OSB_BEGIN extern "C" {
#define OSB_END	  }
#else
#define OSB_BEGIN
#define OSB_END
#endif
