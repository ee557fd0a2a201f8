/*
 * mcp/tools.c - see tools.h.
 */
#include "mcp/tools.h"

#include "codec/json_writer.h"

static const struct tool *const groups[] = {tools_sandbox, tools_run, tools_file, tools_snapshot};

const struct shape shape_status[] = {
	{"status", SHAPE_STRING, SHAPE_NEEDED, NULL, "What was done.", 0, 0, NULL},
	SHAPE_END,
};

const struct tool *tool_find(struct view name)
{
	for (size_t i = 0; i < ARRAY_LEN(groups); i++)
		for (const struct tool *t = groups[i]; t->name; t++)
			if (view_is(name, t->name))
				return t;
	return NULL;
}

static void write_annotations(struct json_writer *w, const struct tool *t)
{
	bool reads = t->hints & TOOL_READS;

	json_write_key(w, "annotations");
	json_write_object(w);
	json_put_cstr(w, "title", t->title);
	json_put_bool(w, "readOnlyHint", reads);
	json_put_bool(w, "destructiveHint", !reads && (t->hints & TOOL_DESTROYS));
	json_put_bool(w, "idempotentHint", reads || (t->hints & TOOL_IDEMPOTENT));
	/* Sandboxes are a world of their own; code in them may reach others. */
	json_put_bool(w, "openWorldHint", !reads && (t->hints & TOOL_DESTROYS));
	json_write_object_end(w);
}

static void write_tool(struct json_writer *w, const struct tool *t)
{
	json_write_object(w);
	json_put_cstr(w, "name", t->name);
	json_put_cstr(w, "title", t->title);
	json_put_cstr(w, "description", t->help);
	json_write_key(w, "inputSchema");
	shape_write_schema(w, t->input, 0);
	json_write_key(w, "outputSchema");
	shape_write_schema(w, t->output, SHAPE_OPEN);
	write_annotations(w, t);
	json_write_object_end(w);
}

void tools_write_list(struct json_writer *w)
{
	json_write_object(w);
	json_write_key(w, "tools");
	json_write_array(w);
	for (size_t i = 0; i < ARRAY_LEN(groups); i++)
		for (const struct tool *t = groups[i]; t->name; t++)
			write_tool(w, t);
	json_write_array_end(w);
	json_write_object_end(w);
}
