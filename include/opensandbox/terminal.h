/*
 * opensandbox/terminal.h - terminals in a sandbox that outlive their clients.
 *
 * A terminal is used by one thread at a time.
 */
#pragma once

#include <opensandbox/sandbox.h>

OSB_BEGIN

typedef struct osb_terminal osb_terminal;

/* A session: nothing runs in it until somebody attaches.  `cwd` and `command` may be NULL; `ret_id`
 * has room for OSB_ID_MAX bytes. */
OSB_API int osb_terminal_create(osb_sandbox *s, const char *cwd, const char *command,
				const osb_call *call, char *ret_id, osb_error *e);
OSB_API int osb_terminal_delete(osb_sandbox *s, const char *id, const osb_call *call, osb_error *e);

typedef struct osb_attach {
	int64_t since; /* replay output from there on: 0 = all that is kept, -1 = none */
	bool takeover; /* although somebody else is attached */
	bool viewer;   /* only to watch */
	bool pipes;    /* no terminal: standard output and error are told apart */
} osb_attach;

/* `how` may be NULL. */
OSB_API int osb_terminal_attach(osb_sandbox *s, const char *id, const osb_attach *how,
				const osb_call *call, osb_terminal **ret, osb_error *e);
OSB_API void osb_terminal_close(osb_terminal *t); /* accepts NULL; what runs in it runs on */

/* For poll(2) beside the keyboard: readable means that osb_terminal_read() has something to do, and
 * so does osb_terminal_pending(), which must be asked first: what has come may be several events.
 */
OSB_API int osb_terminal_fd(const osb_terminal *t);
OSB_API bool osb_terminal_pending(osb_terminal *t);

typedef struct osb_terminal_event {
	enum {
		OSB_TERMINAL_NOTHING, /* there was nothing for the caller in it */
		OSB_TERMINAL_OUTPUT,
		OSB_TERMINAL_ERROR_OUTPUT, /* pipes only */
		OSB_TERMINAL_EXIT,
		OSB_TERMINAL_CLOSED, /* by the other side: `text` says why, if it did */
	} kind;
	const char *bytes; /* good until the next call */
	size_t n;
	int64_t offset; /* behind these bytes: where to go on after a break */
	int exit_code;
	const char *text;
} osb_terminal_event;

/* Waits for one event, no longer than the call says. */
OSB_API int osb_terminal_read(osb_terminal *t, const osb_call *call, osb_terminal_event *ret,
			      osb_error *e);
OSB_API int osb_terminal_write(osb_terminal *t, const void *bytes, size_t n, const osb_call *call,
			       osb_error *e);
OSB_API int osb_terminal_resize(osb_terminal *t, unsigned columns, unsigned rows,
				const osb_call *call, osb_error *e);
/* "SIGINT", "SIGTERM", "SIGKILL", "SIGQUIT", "SIGHUP". */
OSB_API int osb_terminal_signal(osb_terminal *t, const char *name, const osb_call *call,
				osb_error *e);

OSB_END
