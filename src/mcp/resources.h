/*
 * mcp/resources.h - files of sandboxes as sandbox://ID/PATH.
 */
#pragma once

struct call;
struct json_writer;
struct mcp;

void resources_write_list(struct mcp *mcp, struct json_writer *w);
void resources_write_templates(struct json_writer *w);

/* Writes {"contents":[...]} into c->w; 0, or -1 after call_fail(). */
int resources_read(struct call *c);
