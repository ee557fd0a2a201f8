/*
 * execd/code_port.h - the port where clients look whether code can be run.
 *
 * Published clients of the code interpreter take a connection to 127.0.0.1:44771 (JUPYTER_PORT)
 * inside the sandbox for the proof.  Here code needs no server of its own: something has to answer
 * there.
 */
#pragma once

struct app;
struct code_port;

#define CODE_PORT 44771

/* NULL when the port is taken: then whoever has it answers. */
struct code_port *code_port_new(struct app *app);
void code_port_free(struct code_port *p); /* accepts NULL */
