/*
 * mcp/resources.c - see resources.h.
 */
#include "mcp/resources.h"

#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "codec/base64.h"
#include "codec/json.h"
#include "codec/url.h"
#include "mcp/call.h"
#include "mcp/fetch.h"
#include "mcp/mcp.h"
#include "mcp/registry.h"

#define SCHEME	     "sandbox://"
#define RESOURCE_MAX (4u << 20)
#define NOT_FOUND    (-32002) /* as MCP has it */

static void write_one(void *arg, const char *id)
{
	struct json_writer *w = arg;
	osb_cleanup(mem_freep) char *uri = mem_printf(SCHEME "%s/", id);

	json_write_object(w);
	json_put_cstr(w, "uri", uri);
	json_put_cstr(w, "name", id);
	json_put_cstr(w, "description", "Root directory of a sandbox that is connected");
	json_put_cstr(w, "mimeType", "inode/directory");
	json_write_object_end(w);
}

void resources_write_list(struct mcp *mcp, struct json_writer *w)
{
	json_write_object(w);
	json_write_key(w, "resources");
	json_write_array(w);
	registry_each(mcp->registry, write_one, w);
	json_write_array_end(w);
	json_write_object_end(w);
}

void resources_write_templates(struct json_writer *w)
{
	json_write_object(w);
	json_write_key(w, "resourceTemplates");
	json_write_array(w);
	json_write_object(w);
	json_put_cstr(w, "uriTemplate", SCHEME "{sandbox_id}/{+path}");
	json_put_cstr(w, "name", "sandbox-file");
	json_put_cstr(w, "title", "File of a sandbox");
	json_put_cstr(w, "description",
		      "A file, or (with a slash at the end) the names in a directory");
	json_write_object_end(w);
	json_write_array_end(w);
	json_write_object_end(w);
}

/* ---- reading ---- */

static void begin(struct call *c, const char *uri, const char *mime)
{
	json_write_object(&c->w);
	json_write_key(&c->w, "contents");
	json_write_array(&c->w);
	json_write_object(&c->w);
	json_put_cstr(&c->w, "uri", uri);
	json_put_cstr(&c->w, "mimeType", mime);
}

static int end(struct call *c)
{
	json_write_object_end(&c->w);
	json_write_array_end(&c->w);
	json_write_object_end(&c->w);
	return 0;
}

static int read_directory(struct call *c, osb_sandbox *s, const char *uri, const char *path)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(RESOURCE_MAX);
	osb_file_list *found = NULL;
	int r;

	if (call_check(c, osb_directory_list(s, path, 1, &c->how, &found, &c->e)) < 0)
		return -1;
	r = 0;
	for (size_t i = 0; r == 0 && i < found->n; i++) {
		const osb_file_info *f = &found->items[i];
		bool directory = f->type && strcmp(f->type, "directory") == 0;

		r = buf_printf(&text, "%s%s\n", f->path, directory ? "/" : "");
	}
	osb_file_list_free(found);
	if (r < 0)
		return call_fail(c, "The directory is too large: use the tool file_list.");
	begin(c, uri, "inode/directory");
	json_put_string(&c->w, "text", buf_view(&text));
	return end(c);
}

static int read_file(struct call *c, osb_sandbox *s, const char *uri, const char *path)
{
	osb_cleanup(buf_done) struct buf bytes = BUF_INIT(RESOURCE_MAX);
	osb_cleanup(mem_freep) char *base64 = NULL;
	struct fetch f = {.last = -1, .max = RESOURCE_MAX};

	if (fetch_file(c, s, path, &f, &bytes) < 0)
		return -1;
	if (f.more)
		return call_fail(c, "The file is larger than 4 MiB: read it in pieces with the "
				    "tool file_read and its range_header.");
	if (utf8_valid(buf_view(&bytes)) &&
	    !(bytes.len && memchr(buf_view(&bytes).p, '\0', bytes.len))) {
		begin(c, uri, "text/plain");
		json_put_string(&c->w, "text", buf_view(&bytes));
		return end(c);
	}
	base64 = mem_alloc(BASE64_LEN(bytes.len) + 1);
	base64_format(buf_view(&bytes).p, bytes.len, base64);
	begin(c, uri, "application/octet-stream");
	json_put_cstr(&c->w, "blob", base64);
	return end(c);
}

int resources_read(struct call *c)
{
	const char *uri = arg_str_in(c, c->msg.params, "uri", "");
	struct view rest = view_of(uri), id, path;
	osb_sandbox *s;

	c->code = JSONRPC_INVALID_PARAMS;
	if (!view_starts(rest, VIEW(SCHEME)))
		return call_fail(c, "A resource is sandbox://SANDBOX_ID/PATH.");
	rest = view_skip(rest, sizeof(SCHEME) - 1);
	id = view_first(rest, view_find(rest, '/'));
	if (!id.len || id.len == rest.len ||
	    url_decode(&c->arena, view_skip(rest, id.len), URL_PATH, &path) < 0)
		return call_fail(c, "A resource is sandbox://SANDBOX_ID/PATH, percent-encoded.");
	c->code = JSONRPC_INTERNAL_ERROR;
	s = call_connect(c, arena_str(&c->arena, id));
	if (s && view_ends(path, VIEW("/"))) {
		if (read_directory(c, s, uri, arena_str(&c->arena, path)) == 0)
			return 0;
	} else if (s && read_file(c, s, uri, arena_str(&c->arena, path)) == 0) {
		return 0;
	}
	if (c->e.code == OSB_ERR_NOT_FOUND)
		c->code = NOT_FOUND;
	return -1;
}
