/*
 * opensandbox/files.h - files and directories of a sandbox.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opensandbox/sandbox.h>

OSB_BEGIN

/* Owner, group and permissions of what is made; 0 and NULL leave the defaults. */
typedef struct osb_file_mode {
	unsigned mode; /* 0644 */
	const char *owner, *group;
} osb_file_mode;

/* Bytes done so far, and of how many (-1 = unknown); non-zero ends the transfer. */
typedef int osb_progress_fn(void *arg, int64_t done, int64_t total);

typedef struct osb_transfer {
	osb_progress_fn *progress; /* or NULL */
	void *arg;
} osb_transfer;

/* Whole files; *ret_bytes (`n` bytes and a NUL) is freed with osb_free(). */
OSB_API int osb_file_write(osb_sandbox *s, const char *path, const void *bytes, size_t n,
			   const osb_file_mode *mode, const osb_call *call, osb_error *e);
OSB_API int osb_file_read(osb_sandbox *s, const char *path, const osb_call *call, char **ret_bytes,
			  size_t *ret_n, osb_error *e);

/* Streamed from and to descriptors, which stay the caller's and are read or written from where they
 * stand.  No time limit holds for them but the call's own, if it has one. */
OSB_API int osb_file_upload(osb_sandbox *s, int fd, const char *path, const osb_file_mode *mode,
			    const osb_transfer *transfer, const osb_call *call, osb_error *e);
OSB_API int osb_file_download(osb_sandbox *s, const char *path, int fd,
			      const osb_transfer *transfer, const osb_call *call, osb_error *e);

/* `first` and `last` (-1 = to the end) are bytes, both included. */
OSB_API int osb_file_download_range(osb_sandbox *s, const char *path, int64_t first, int64_t last,
				    int fd, const osb_transfer *transfer, const osb_call *call,
				    osb_error *e);

typedef struct osb_file_info {
	const char *path;
	const char *type; /* "file", "directory", "symlink", "other" */
	int64_t size;
	unsigned mode; /* 0755 */
	const char *owner, *group, *modified_at, *created_at;
} osb_file_info;

typedef struct osb_file_list {
	const osb_file_info *items;
	size_t n;
	const char *json;
} osb_file_list;

OSB_API void osb_file_list_free(osb_file_list *l); /* accepts NULL */

/* `paths` are NULL-terminated.  One that is missing fails the whole call. */
OSB_API int osb_file_stat(osb_sandbox *s, const char *const *paths, const osb_call *call,
			  osb_file_list **ret, osb_error *e);
OSB_API int osb_file_search(osb_sandbox *s, const char *directory, const char *pattern,
			    const osb_call *call, osb_file_list **ret, osb_error *e);
OSB_API int osb_directory_list(osb_sandbox *s, const char *path, int depth, const osb_call *call,
			       osb_file_list **ret, osb_error *e);

OSB_API int osb_file_delete(osb_sandbox *s, const char *const *paths, const osb_call *call,
			    osb_error *e);
OSB_API int osb_file_move(osb_sandbox *s, const char *from, const char *to, const osb_call *call,
			  osb_error *e);
OSB_API int osb_file_set_mode(osb_sandbox *s, const char *path, const osb_file_mode *mode,
			      const osb_call *call, osb_error *e);

/* Replaces every `old` by `new_text`; *ret_count may be NULL. */
OSB_API int osb_file_replace(osb_sandbox *s, const char *path, const char *old,
			     const char *new_text, const osb_call *call, int64_t *ret_count,
			     osb_error *e);

/* With parents; existing ones are no failure. */
OSB_API int osb_directory_create(osb_sandbox *s, const char *const *paths,
				 const osb_file_mode *mode, const osb_call *call, osb_error *e);
/* With all that is in them. */
OSB_API int osb_directory_delete(osb_sandbox *s, const char *const *paths, const osb_call *call,
				 osb_error *e);

OSB_END
