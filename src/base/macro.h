/*
 * base/macro.h - the few macros every file may use.
 *
 * Attributes carry the `osb_` prefix; everything else is a plain word.
 */
#pragma once

#include <stddef.h>

/* Memory that is used again hides mistakes from AddressSanitizer: then it is not. */
#if defined(__SANITIZE_ADDRESS__)
#define OSB_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OSB_ASAN 1
#endif
#endif
#ifndef OSB_ASAN
#define OSB_ASAN 0
#endif

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define osb_printf(fmt, args) __attribute__((format(printf, fmt, args)))
#define osb_must_check	      __attribute__((warn_unused_result))
#define osb_noreturn	      __attribute__((noreturn))
#define osb_unused	      __attribute__((unused))

/* Runs `fn(&variable)` when the variable leaves its scope. */
#define osb_cleanup(fn) __attribute__((cleanup(fn)))

/* Makes `fn`p(), the form that osb_cleanup() wants, from `fn()`. */
#define DEFINE_CLEANUP(type, fn)                                                                   \
	static inline osb_unused void fn##p(type *p)                                               \
	{                                                                                          \
		fn(*p);                                                                            \
	}

/* Hands the value over and leaves the variable empty, so that its cleanup does nothing. */
#define take_ptr(ptr)                                                                              \
	({                                                                                         \
		__typeof__(ptr) taken_ = (ptr);                                                    \
		(ptr) = NULL;                                                                      \
		taken_;                                                                            \
	})

#define take_fd(fd)                                                                                \
	({                                                                                         \
		int taken_ = (fd);                                                                 \
		(fd) = -1;                                                                         \
		taken_;                                                                            \
	})

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#define MIN(a, b)                                                                                  \
	({                                                                                         \
		__typeof__(a) min_a_ = (a);                                                        \
		__typeof__(b) min_b_ = (b);                                                        \
		min_a_ < min_b_ ? min_a_ : min_b_;                                                 \
	})

#define MAX(a, b)                                                                                  \
	({                                                                                         \
		__typeof__(a) max_a_ = (a);                                                        \
		__typeof__(b) max_b_ = (b);                                                        \
		max_a_ > max_b_ ? max_a_ : max_b_;                                                 \
	})
