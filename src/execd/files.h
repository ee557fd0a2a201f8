/*
 * execd/files.h - the file routes, each for any root: plain ones use file_root_real, isolated
 * sessions their own.
 *
 * A handler answers the exchange itself, now or later; `root` is copied when it is needed later.
 */
#pragma once

#include "base/view.h"

struct app;
struct file_root;
struct http_exchange;

typedef void file_api_fn(struct app *app, struct http_exchange *x, const struct file_root *root);

file_api_fn files_info;
file_api_fn files_delete;
file_api_fn files_permissions;
file_api_fn files_mv;
file_api_fn files_search;
file_api_fn files_replace;
file_api_fn files_upload;
file_api_fn files_download;
file_api_fn directories_list;
file_api_fn directories_create;
file_api_fn directories_delete;

/* The same as a table; paths as the plain routes have them ("/files/info"); ends with NULLs. */
struct file_api {
	const char *method;
	const char *path;
	file_api_fn *handle;
};

extern const struct file_api file_apis[];

/* NULL when there is no such row.  HEAD finds the GET row. */
const struct file_api *file_api_find(struct view method, struct view path);
