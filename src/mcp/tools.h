/*
 * mcp/tools.h - the tools: names, shapes, hints, and what they do.
 */
#pragma once

#include "base/view.h"
#include "mcp/shape.h"

struct call;
struct json_writer;

enum tool_hints {
	TOOL_READS = 1,	     /* changes nothing */
	TOOL_DESTROYS = 2,   /* may end or overwrite something */
	TOOL_IDEMPOTENT = 4, /* twice is once */
};

struct tool {
	const char *name, *title, *help;
	const struct shape *input, *output;
	unsigned hints;
	int (*run)(struct call *c); /* writes c->w; 0, or -1 after call_fail() */
};

/* To one without a name. */
extern const struct tool tools_sandbox[], tools_run[], tools_file[], tools_snapshot[];

const struct tool *tool_find(struct view name); /* or NULL */
void tools_write_list(struct json_writer *w);	/* {"tools":[...]} */

/* Shapes that several have in common. */
extern const struct shape shape_status[], shape_info[];
#define SHAPE_SANDBOX_ID                                                                           \
	{                                                                                          \
		"sandbox_id", SHAPE_STRING, SHAPE_NEEDED, NULL, "Id of the sandbox.", 0, 0, NULL   \
	}
#define SHAPE_CONNECT                                                                              \
	{                                                                                          \
		"connect_if_missing", SHAPE_BOOL, 0, "false",                                      \
			"Connect to the sandbox first if that was not done yet.", 0, 0, NULL       \
	}
#define SHAPE_END                                                                                  \
	{                                                                                          \
		NULL, SHAPE_ANY, 0, NULL, NULL, 0, 0, NULL                                         \
	}

/* A sandbox's description; `osb_sandbox_info` in the names of the published clients. */
struct osb_sandbox_info;
void put_info(struct json_writer *w, const struct osb_sandbox_info *i);
