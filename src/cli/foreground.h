/*
 * cli/foreground.h - a program in a sandbox as if it ran here: its output, its exit code, Ctrl-C.
 */
#pragma once

#include <opensandbox/opensandbox.h>

struct cli;

/*
 * Output goes to standard output and error as it comes.  The first interrupt is passed on to the
 * program, the second ends the wait.  The session is NULL for a command.  Returns the program's
 * exit code, or ours after a message.
 */
int foreground_run(struct cli *c, osb_sandbox *s, const char *session, const osb_command *what);
