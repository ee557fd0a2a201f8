/*
 * execd/find_shell.h - which shell runs a command line.
 */
#pragma once

struct app;

/*
 * The path of bash, else of sh, by the daemon's PATH; NULL when there is neither.  A bash that was
 * found is remembered; without one, every call looks again.  Valid until the next call.
 */
const char *find_shell(struct app *app);

/* The remembered shell could not be executed: look again next time. */
void find_shell_forget(struct app *app);
