/*
 * execd/find_shell.h - which shell runs a command line.
 */
#pragma once

struct app;

/* An executable file of this name in an absolute directory of the path, for the caller to free. */
char *find_program(const char *search_path, const char *name);

/*
 * The path of bash, else of sh, by the daemon's PATH; NULL when there is neither.  A bash that was
 * found is remembered; without one, every call looks again.  Valid until the next call.
 */
const char *find_shell(struct app *app);

/* The remembered shell could not be executed: look again next time. */
void find_shell_forget(struct app *app);
