/*
 * mcp/mcp.h - what all of the program shares.
 */
#pragma once

#include <opensandbox/client.h>

struct outputs;
struct pool;
struct registry;

#define MCP_MESSAGE_MAX (16u << 20) /* of a client */
#define MCP_ANSWER_MAX	(64u << 20)
#define MCP_READ_MAX	(256u << 10) /* of a file, or of a run's output, in one answer */
#define MCP_ENTRIES_MAX 1000	     /* files in one answer */

struct mcp {
	osb_client *client;
	struct registry *registry;
	struct outputs *outputs;
	struct pool *pool;
};
