/*
 * mcp/standard.h - one client on standard input and output: a message a line.
 */
#pragma once

struct mcp;

/* Until the input ends, or nobody reads the output; exit code. */
int standard_serve(struct mcp *mcp);
