/*
 * mcp/tools_file.c - files and directories of a sandbox.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/utf8.h"
#include "codec/base64.h"
#include "codec/json.h"
#include "mcp/call.h"
#include "mcp/fetch.h"
#include "mcp/mcp.h"
#include "mcp/tools.h"

/* ---- shapes ---- */

#define SHAPE_PATH                                                                                 \
	{                                                                                          \
		"path", SHAPE_STRING, SHAPE_NEEDED, NULL, "Path in the sandbox.", 0, 0, NULL       \
	}
#define SHAPE_MODE                                                                                 \
	{                                                                                          \
		"mode", SHAPE_INT, 0, "755", "Permissions, written as chmod takes them: 644.", 0,  \
			7777, NULL                                                                 \
	}
#define SHAPE_OWNER                                                                                \
	{                                                                                          \
		"owner", SHAPE_STRING, 0, NULL, "User it shall belong to.", 0, 0, NULL             \
	}
#define SHAPE_GROUP                                                                                \
	{                                                                                          \
		"group", SHAPE_STRING, 0, NULL, "Group it shall belong to.", 0, 0, NULL            \
	}
#define SHAPE_ENCODING                                                                             \
	{                                                                                          \
		"encoding", SHAPE_STRING, 0, "\"utf-8\"",                                          \
			"utf-8, ascii, latin-1, or base64 for any bytes.", 0, 0, NULL              \
	}

static const struct shape read_input[] = {
	SHAPE_SANDBOX_ID,
	SHAPE_PATH,
	SHAPE_ENCODING,
	{"range_header", SHAPE_STRING, 0, NULL, "Bytes to read, like \"bytes=0-1023\".", 0, 0,
	 NULL},
	SHAPE_CONNECT,
	SHAPE_END,
};

static const struct shape read_output[] = {
	{"path", SHAPE_STRING, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	{"content", SHAPE_STRING, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	{"truncated", SHAPE_BOOL, SHAPE_NEEDED, NULL, "There is more of it.", 0, 0, NULL},
	{"next_range", SHAPE_STRING, 0, NULL, "range_header that reads on.", 0, 0, NULL},
	SHAPE_END,
};

static const struct shape write_input[] = {
	SHAPE_SANDBOX_ID,
	SHAPE_PATH,
	{"content", SHAPE_TEXT, SHAPE_NEEDED, NULL, "The whole content.", 0, 0, NULL},
	SHAPE_ENCODING,
	SHAPE_MODE,
	SHAPE_OWNER,
	SHAPE_GROUP,
	SHAPE_CONNECT,
	SHAPE_END,
};

static const struct shape paths_input[] = {
	SHAPE_SANDBOX_ID,
	{"paths", SHAPE_STRINGS, SHAPE_NEEDED, NULL, "Paths in the sandbox.", 0, 0, NULL},
	SHAPE_CONNECT,
	SHAPE_END,
};

static const struct shape search_input[] = {
	SHAPE_SANDBOX_ID,
	{"path", SHAPE_STRING, SHAPE_NEEDED, NULL, "Directory to search.", 0, 0, NULL},
	{"pattern", SHAPE_STRING, SHAPE_NEEDED, NULL, "Like \"*.py\".", 0, 0, NULL},
	SHAPE_CONNECT,
	SHAPE_END,
};

static const struct shape list_input[] = {
	SHAPE_SANDBOX_ID,
	{"path", SHAPE_STRING, 0, "\"/\"", "Directory to list.", 0, 0, NULL},
	{"depth", SHAPE_INT, 0, "1", "How many levels.", 1, 64, NULL},
	{"offset", SHAPE_INT, 0, "0", "Leave out so many entries at the front.", 0, 1000000000,
	 NULL},
	SHAPE_CONNECT,
	SHAPE_END,
};

static const struct shape entry_members[] = {
	{"path", SHAPE_STRING, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	{"type", SHAPE_STRING, 0, NULL, "file, directory, symlink, other.", 0, 0, NULL},
	{"mode", SHAPE_INT, SHAPE_NEEDED, NULL, "Permissions, as 755.", 0, 0, NULL},
	{"owner", SHAPE_STRING, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	{"group", SHAPE_STRING, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	{"size", SHAPE_INT, SHAPE_NEEDED, NULL, "Bytes.", 0, 0, NULL},
	{"modified_at", SHAPE_STRING, 0, NULL, NULL, 0, 0, NULL},
	{"created_at", SHAPE_STRING, 0, NULL, NULL, 0, 0, NULL},
	SHAPE_END,
};

static const struct shape entries_output[] = {
	{"result", SHAPE_OBJECTS, SHAPE_NEEDED | SHAPE_OPEN, NULL, NULL, 0, 0, entry_members},
	{"total", SHAPE_INT, SHAPE_NEEDED, NULL, "How many there are.", 0, 0, NULL},
	{"truncated", SHAPE_BOOL, SHAPE_NEEDED, NULL,
	 "Not all are here: narrow the pattern, or go on with offset.", 0, 0, NULL},
	SHAPE_END,
};

static const struct shape directory_members[] = {
	SHAPE_PATH, SHAPE_MODE, SHAPE_OWNER, SHAPE_GROUP, SHAPE_END,
};

static const struct shape directories_input[] = {
	SHAPE_SANDBOX_ID,
	{"entries", SHAPE_OBJECTS, SHAPE_NEEDED, NULL, "Directories to make, with their parents.",
	 0, 0, directory_members},
	SHAPE_CONNECT,
	SHAPE_END,
};

static const struct shape move_members[] = {
	{"source", SHAPE_STRING, SHAPE_NEEDED, NULL, "What is moved.", 0, 0, NULL},
	{"destination", SHAPE_STRING, SHAPE_NEEDED, NULL, "Its new path.", 0, 0, NULL},
	SHAPE_END,
};

static const struct shape move_input[] = {
	SHAPE_SANDBOX_ID,
	{"entries", SHAPE_OBJECTS, SHAPE_NEEDED, NULL, NULL, 0, 0, move_members},
	SHAPE_CONNECT,
	SHAPE_END,
};

static const struct shape replace_members[] = {
	SHAPE_PATH,
	{"old_content", SHAPE_STRING, SHAPE_NEEDED, NULL, "Every occurrence is replaced.", 0, 0,
	 NULL},
	{"new_content", SHAPE_STRING, SHAPE_NEEDED, NULL, "What stands there then.", 0, 0, NULL},
	SHAPE_END,
};

static const struct shape replace_input[] = {
	SHAPE_SANDBOX_ID,
	{"entries", SHAPE_OBJECTS, SHAPE_NEEDED, NULL, NULL, 0, 0, replace_members},
	SHAPE_CONNECT,
	SHAPE_END,
};

static const struct shape replaced_members[] = {
	{"path", SHAPE_STRING, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	{"replaced_count", SHAPE_INT, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	SHAPE_END,
};

static const struct shape replace_output[] = {
	{"result", SHAPE_OBJECTS, SHAPE_NEEDED | SHAPE_OPEN, NULL, NULL, 0, 0, replaced_members},
	SHAPE_END,
};

/* ---- encodings ---- */

enum encoding { UTF8, ASCII, LATIN1, BASE64, ENCODINGS_ };

/* The first name of each is its own, others are known too. */
static const struct {
	const char *name;
	enum encoding encoding;
} encodings[] = {
	{"utf-8", UTF8},     {"utf8", UTF8},	     {"ascii", ASCII},	 {"us-ascii", ASCII},
	{"latin-1", LATIN1}, {"iso-8859-1", LATIN1}, {"latin1", LATIN1}, {"base64", BASE64},
};

static int read_encoding(struct call *c, enum encoding *ret)
{
	const char *name = arg_str(c, "encoding", "utf-8");

	for (size_t i = 0; i < ARRAY_LEN(encodings); i++) {
		if (!view_iis(view_of(name), encodings[i].name))
			continue;
		*ret = encodings[i].encoding;
		return 0;
	}
	return call_fail(c,
			 "The encoding '%.40s' is not known; there are utf-8, ascii, latin-1 "
			 "and base64.",
			 name);
}

static bool is_ascii(struct view bytes)
{
	for (size_t i = 0; i < bytes.len; i++)
		if ((unsigned char)bytes.p[i] > 127)
			return false;
	return true;
}

/* Appends `bytes` as text; false if they are none in this encoding. */
static bool decode(enum encoding encoding, struct view bytes, struct buf *ret)
{
	char *room;

	if (encoding == BASE64) {
		room = buf_reserve(ret, BASE64_LEN(bytes.len) + 1);
		if (!room)
			return false;
		base64_format(bytes.p, bytes.len, room);
		buf_commit(ret, BASE64_LEN(bytes.len));
		return true;
	}
	if (encoding != LATIN1)
		return (encoding == ASCII ? is_ascii(bytes) : utf8_valid(bytes)) &&
		       buf_append_view(ret, bytes) == 0;
	for (size_t i = 0; i < bytes.len; i++) {
		char text[4];
		size_t n = utf8_format((unsigned char)bytes.p[i], text);

		if (buf_append(ret, text, n) < 0)
			return false;
	}
	return true;
}

/* The bytes that `text` stands for. */
static bool encode(enum encoding encoding, struct view text, struct buf *ret)
{
	ssize_t n;

	if (encoding == BASE64) {
		char *room = buf_reserve(ret, text.len + 1);

		n = room ? base64_parse(text, room, text.len) : -1;
		if (n >= 0)
			buf_commit(ret, (size_t)n);
		return n >= 0;
	}
	if (encoding != LATIN1)
		return (encoding == UTF8 || is_ascii(text)) && buf_append_view(ret, text) == 0;
	while (text.len) {
		uint32_t letter = 0;
		int used = utf8_next(text, &letter);

		if (used <= 0 || letter > 255 || buf_append_char(ret, (char)letter) < 0)
			return false;
		text = view_skip(text, (size_t)used);
	}
	return true;
}

/* ---- reading and writing ---- */

/* "bytes=A-B", "bytes=A-" and "bytes=-N". */
static int read_range(struct call *c, osb_sandbox *s, const char *path, struct fetch *f)
{
	const char *header = arg_str(c, "range_header", NULL), *const paths[] = {path, NULL};
	struct view rest = view_of(header), first;
	osb_file_list *found = NULL;
	uint64_t from = 0, to = 0;
	bool ok;

	if (!header)
		return 0;
	ok = view_starts(rest, VIEW("bytes="));
	rest = view_skip(rest, 6);
	first = view_first(rest, view_find(rest, '-'));
	ok = ok && first.len < rest.len && (!first.len || num_parse_u64(first, &from));
	rest = view_skip(rest, first.len + 1);
	ok = ok && (first.len || rest.len) && (!rest.len || num_parse_u64(rest, &to)) &&
	     from <= INT64_MAX && to < INT64_MAX && (!first.len || !rest.len || from <= to);
	if (!ok)
		return call_fail(c, "range_header must look like \"bytes=0-1023\", \"bytes=1024-\" "
				    "or \"bytes=-100\".");
	if (!first.len) {
		if (call_check(c, osb_file_stat(s, paths, &c->how, &found, &c->e)) < 0)
			return -1;
		from = found->n ? (uint64_t)found->items[0].size : 0;
		from -= MIN(from, to);
		osb_file_list_free(found);
	}
	f->first = (int64_t)from;
	f->last = first.len && rest.len ? (int64_t)to : -1;
	return 0;
}

static void put_next(struct json_writer *w, const struct fetch *f, size_t read)
{
	char next[64];

	json_put_bool(w, "truncated", f->more);
	if (!f->more) {
		put_null(w, "next_range");
		return;
	}
	if (f->last < 0)
		snprintf(next, sizeof(next), "bytes=%" PRId64 "-", f->first + (int64_t)read);
	else
		snprintf(next, sizeof(next), "bytes=%" PRId64 "-%" PRId64, f->first + (int64_t)read,
			 f->last);
	json_put_cstr(w, "next_range", next);
}

static int file_read(struct call *c)
{
	osb_cleanup(buf_done) struct buf bytes = BUF_INIT(MCP_READ_MAX);
	osb_cleanup(buf_done) struct buf text = BUF_INIT(2u * MCP_READ_MAX);
	const char *path = arg_str(c, "path", "");
	struct fetch f = {.last = -1, .max = MCP_READ_MAX};
	osb_sandbox *s = call_sandbox(c);
	enum encoding encoding = UTF8;

	if (!s || read_encoding(c, &encoding) < 0 || read_range(c, s, path, &f) < 0 ||
	    fetch_file(c, s, path, &f, &bytes) < 0)
		return -1;
	/* A character that the limit cuts in two comes with the next piece. */
	if (encoding == UTF8 && f.more)
		buf_truncate(&bytes, bytes.len - utf8_incomplete_tail(buf_view(&bytes)));
	if (!decode(encoding, buf_view(&bytes), &text))
		return call_fail(c,
				 "'%.200s' is no text in this encoding. Read it with encoding "
				 "\"base64\".",
				 path);
	json_write_object(&c->w);
	json_put_cstr(&c->w, "path", path);
	json_put_string(&c->w, "content", buf_view(&text));
	put_next(&c->w, &f, bytes.len);
	json_write_object_end(&c->w);
	return 0;
}

/* 755 stands for 0755. */
static int read_mode(struct call *c, const struct json *object, osb_file_mode *ret)
{
	int64_t n = arg_int(object, "mode", 755);
	char digits[24];
	uint32_t mode;

	snprintf(digits, sizeof(digits), "%" PRId64, n);
	if (!num_parse_octal(view_of(digits), &mode))
		return call_fail(c,
				 "The mode %" PRId64 " has digits that no permissions have; "
				 "write it as chmod takes it, like 644.",
				 n);
	*ret = (osb_file_mode){.mode = mode,
			       .owner = arg_str_in(c, object, "owner", NULL),
			       .group = arg_str_in(c, object, "group", NULL)};
	return 0;
}

static int file_write(struct call *c)
{
	osb_cleanup(buf_done) struct buf bytes = BUF_INIT(MCP_MESSAGE_MAX);
	const char *path = arg_str(c, "path", "");
	struct view text = arg_text(c->args, "content");
	osb_sandbox *s = call_sandbox(c);
	enum encoding encoding = UTF8;
	osb_file_mode mode;

	if (!s || read_encoding(c, &encoding) < 0 || read_mode(c, c->args, &mode) < 0)
		return -1;
	if (!encode(encoding, text, &bytes))
		return call_fail(c, "The content cannot be written in this encoding.");
	if (call_check(c, osb_file_write(s, path, buf_str(&bytes), bytes.len, &mode, &c->how,
					 &c->e)) < 0)
		return -1;
	return call_status(c, "written");
}

/* ---- looking ---- */

static int show_entries(struct call *c, osb_file_list *found, size_t offset)
{
	struct json_writer *w = &c->w;
	size_t from = MIN(offset, found->n);
	size_t to = from + MIN(found->n - from, (size_t)MCP_ENTRIES_MAX);
	char digits[16];
	int64_t mode;

	json_write_object(w);
	json_write_key(w, "result");
	json_write_array(w);
	for (size_t i = from; i < to; i++) {
		const osb_file_info *f = &found->items[i];

		snprintf(digits, sizeof(digits), "%o", f->mode & 07777);
		if (!num_parse_i64(view_of(digits), &mode))
			mode = 0;
		json_write_object(w);
		json_put_cstr(w, "path", f->path);
		put_text(w, "type", f->type);
		json_put_int(w, "mode", mode);
		json_put_cstr(w, "owner", f->owner ? f->owner : "");
		json_put_cstr(w, "group", f->group ? f->group : "");
		json_put_int(w, "size", f->size);
		put_text(w, "modified_at", f->modified_at);
		put_text(w, "created_at", f->created_at);
		json_write_object_end(w);
	}
	json_write_array_end(w);
	json_put_int(w, "total", (int64_t)found->n);
	json_put_bool(w, "truncated", to < found->n);
	json_write_object_end(w);
	osb_file_list_free(found);
	return 0;
}

static int file_search(struct call *c)
{
	const char *path = arg_str(c, "path", ""), *pattern = arg_str(c, "pattern", "");
	osb_file_list *found = NULL;
	osb_sandbox *s = call_sandbox(c);

	if (!s || call_check(c, osb_file_search(s, path, pattern, &c->how, &found, &c->e)) < 0)
		return -1;
	return show_entries(c, found, 0);
}

static int file_list(struct call *c)
{
	const char *path = arg_str(c, "path", "/");
	int depth = (int)arg_int(c->args, "depth", 1);
	osb_file_list *found = NULL;
	osb_sandbox *s = call_sandbox(c);

	if (!s || call_check(c, osb_directory_list(s, path, depth, &c->how, &found, &c->e)) < 0)
		return -1;
	return show_entries(c, found, (size_t)arg_int(c->args, "offset", 0));
}

/* ---- changing ---- */

typedef int delete_fn(osb_sandbox *s, const char *const *paths, const osb_call *call, osb_error *e);

static int delete_all(struct call *c, delete_fn *fn)
{
	const char *const *paths = arg_strings(c, c->args, "paths");
	osb_sandbox *s = call_sandbox(c);

	if (!s)
		return -1;
	if (!paths || !paths[0])
		return call_fail(c, "paths is empty: name at least one.");
	if (call_check(c, fn(s, paths, &c->how, &c->e)) < 0)
		return -1;
	return call_status(c, "deleted");
}

static int file_delete(struct call *c)
{
	return delete_all(c, osb_file_delete);
}

static int file_delete_directories(struct call *c)
{
	return delete_all(c, osb_directory_delete);
}

static int file_create_directories(struct call *c)
{
	const struct json *entries = json_get(c->args, "entries");
	osb_sandbox *s = call_sandbox(c);

	for (size_t i = 0; s && i < json_len(entries); i++) {
		const struct json *entry = json_at(entries, i);
		const char *const paths[] = {arg_str_in(c, entry, "path", ""), NULL};
		osb_file_mode mode;

		if (read_mode(c, entry, &mode) < 0 ||
		    call_check(c, osb_directory_create(s, paths, &mode, &c->how, &c->e)) < 0)
			return -1;
	}
	return s ? call_status(c, "created") : -1;
}

static int file_move(struct call *c)
{
	const struct json *entries = json_get(c->args, "entries");
	osb_sandbox *s = call_sandbox(c);

	for (size_t i = 0; s && i < json_len(entries); i++) {
		const struct json *entry = json_at(entries, i);

		if (call_check(c, osb_file_move(s, arg_str_in(c, entry, "source", ""),
						arg_str_in(c, entry, "destination", ""), &c->how,
						&c->e)) < 0)
			return -1;
	}
	return s ? call_status(c, "moved") : -1;
}

static int file_replace_contents(struct call *c)
{
	const struct json *entries = json_get(c->args, "entries");
	osb_sandbox *s = call_sandbox(c);

	if (!s)
		return -1;
	json_write_object(&c->w);
	json_write_key(&c->w, "result");
	json_write_array(&c->w);
	for (size_t i = 0; i < json_len(entries); i++) {
		const struct json *entry = json_at(entries, i);
		const char *path = arg_str_in(c, entry, "path", "");
		int64_t count = 0;

		if (call_check(c, osb_file_replace(s, path, arg_str_in(c, entry, "old_content", ""),
						   arg_str_in(c, entry, "new_content", ""), &c->how,
						   &count, &c->e)) < 0)
			return -1;
		json_write_object(&c->w);
		json_put_cstr(&c->w, "path", path);
		json_put_int(&c->w, "replaced_count", count);
		json_write_object_end(&c->w);
	}
	json_write_array_end(&c->w);
	json_write_object_end(&c->w);
	return 0;
}

const struct tool tools_file[] = {
	{"file_read", "Read a file",
	 "Reads a file of a sandbox, or a range of it. At most 256 KiB at once; next_range reads "
	 "on.",
	 read_input, read_output, TOOL_READS, file_read},
	{"file_write", "Write a file", "Writes a file in a sandbox; one that exists is replaced.",
	 write_input, shape_status, TOOL_DESTROYS | TOOL_IDEMPOTENT, file_write},
	{"file_delete", "Delete files", "Deletes files of a sandbox.", paths_input, shape_status,
	 TOOL_DESTROYS, file_delete},
	{"file_search", "Search for files", "Finds files below a directory by a pattern of names.",
	 search_input, entries_output, TOOL_READS, file_search},
	{"file_list", "List a directory", "What is in a directory of a sandbox.", list_input,
	 entries_output, TOOL_READS, file_list},
	{"file_create_directories", "Make directories",
	 "Makes directories in a sandbox, with their parents.", directories_input, shape_status,
	 TOOL_IDEMPOTENT, file_create_directories},
	{"file_delete_directories", "Delete directories",
	 "Deletes directories of a sandbox with all that is in them.", paths_input, shape_status,
	 TOOL_DESTROYS, file_delete_directories},
	{"file_move", "Move files", "Moves or renames files and directories of a sandbox.",
	 move_input, shape_status, TOOL_DESTROYS, file_move},
	{"file_replace_contents", "Replace text in files",
	 "Replaces every occurrence of a text in files of a sandbox.", replace_input,
	 replace_output, TOOL_DESTROYS, file_replace_contents},
	{NULL, NULL, NULL, NULL, NULL, 0, NULL},
};
