/*
 * execd/files.c - the table of file routes, and the plain routes made of it.
 */
#include "execd/files.h"

#include "execd/file_root.h"
#include "execd/routes.h"
#include "net/http_server.h"

const struct file_api file_apis[] = {
	{"GET", "/files/info", files_info},
	{"DELETE", "/files", files_delete},
	{"POST", "/files/permissions", files_permissions},
	{"POST", "/files/mv", files_mv},
	{"GET", "/files/search", files_search},
	{"POST", "/files/replace", files_replace},
	{"POST", "/files/upload", files_upload},
	{"GET", "/files/download", files_download},
	{"GET", "/directories/list", directories_list},
	{"POST", "/directories", directories_create},
	{"DELETE", "/directories", directories_delete},
	{0},
};

const struct file_api *file_api_find(struct view method, struct view path)
{
	if (view_is(method, "HEAD"))
		method = VIEW("GET");
	for (const struct file_api *a = file_apis; a->method; a++)
		if (view_is(method, a->method) && view_is(path, a->path))
			return a;
	return NULL;
}

/* The row of file_apis that the matched route stands for, on the real root. */
static void plain(struct http_exchange *x, void *app)
{
	const struct route_match *m = http_user(x);

	file_api_find(view_of(m->route->method), view_of(m->route->path))
		->handle(app, x, &file_root_real);
}

const struct route api_files_routes[] = {
	{"GET", "/files/info", plain, 0},	  {"DELETE", "/files", plain, 0},
	{"POST", "/files/permissions", plain, 0}, {"POST", "/files/mv", plain, 0},
	{"GET", "/files/search", plain, 0},	  {"POST", "/files/replace", plain, 0},
	{"POST", "/files/upload", plain, 0},	  {"GET", "/files/download", plain, 0},
	{"GET", "/directories/list", plain, 0},	  {"POST", "/directories", plain, 0},
	{"DELETE", "/directories", plain, 0},	  {0},
};
