/*
 * mcp/web.h - clients over streamable HTTP, at /mcp.
 */
#pragma once

struct mcp;
struct options;

/* Until SIGTERM or SIGINT; exit code. */
int web_serve(struct mcp *mcp, const struct options *o);
