/*
 * opensandbox/command.h - programs in a sandbox: run, watched, fed, interrupted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opensandbox/sandbox.h>

OSB_BEGIN

/*
 * Called as things happen, in the thread that made the call.  Each may be NULL.  A handler that
 * returns non-zero ends the call with OSB_ERR_CANCELLED; what runs in the sandbox runs on.
 */
typedef struct osb_output {
	int (*started)(void *arg, const char *id); /* what status, logs and interrupt want */
	/* A piece of output, newlines included; `n` bytes, then a NUL. */
	int (*out)(void *arg, const char *text, size_t n);
	int (*err)(void *arg, const char *text, size_t n);
	/* The value of a code run or something it has shown: MIME types and contents as JSON. */
	int (*result)(void *arg, const char *mime_json);
	int (*failed)(void *arg, const char *name, const char *value, const char *const *traceback);
	void *arg;
} osb_output;

/* How a run has ended. */
typedef struct osb_run {
	char id[OSB_ID_MAX];
	bool complete;	     /* it came to its end; else it failed, or the stream broke off */
	bool has_exit_code;  /* of a command in the foreground */
	int exit_code;	     /* -1 = killed */
	char error_name[64]; /* "" = none */
	char error_value[256];
	uint64_t took_ms; /* by the sandbox's clock; 0 = not said */
} osb_run;

typedef struct osb_command {
	size_t size;
	const char *command;	 /* for a shell; or */
	const char *const *argv; /* NULL-terminated: reaches the program as it stands here */
	const char *cwd;
	const osb_pair *env;
	size_t env_n;
	uint32_t timeout_ms; /* it is killed then; 0 = never */
	bool background;     /* answered when it was started */
	bool has_uid, has_gid;
	uint32_t uid, gid;
} osb_command;

#define OSB_COMMAND_INIT                                                                           \
	{                                                                                          \
		.size = sizeof(osb_command)                                                        \
	}

/* Until it has ended (the call's timeout does not count for the stream). */
OSB_API int osb_command_run(osb_sandbox *s, const osb_command *what, const osb_output *output,
			    const osb_call *call, osb_run *ret, osb_error *e);

typedef struct osb_command_status {
	bool running, has_exit_code;
	int exit_code;
	const char *command, *error, *started_at, *finished_at; /* or NULL */
	const char *json;
} osb_command_status;

OSB_API int osb_command_get(osb_sandbox *s, const char *id, const osb_call *call,
			    osb_command_status **ret, osb_error *e);
OSB_API void osb_command_status_free(osb_command_status *p); /* accepts NULL */

/* Output of a background command from byte *cursor on; *cursor is then where to go on.  *ret_text
 * (`n` bytes and a NUL) is freed with osb_free(). */
OSB_API int osb_command_logs(osb_sandbox *s, const char *id, int64_t *cursor, const osb_call *call,
			     char **ret_text, size_t *ret_n, osb_error *e);

OSB_API int osb_command_interrupt(osb_sandbox *s, const char *id, const osb_call *call,
				  osb_error *e);

/* ---- sessions: shells that remember their directory and variables ---- */

/* `ret_id` has room for OSB_ID_MAX bytes. */
OSB_API int osb_session_create(osb_sandbox *s, const char *cwd, const osb_call *call, char *ret_id,
			       osb_error *e);
OSB_API int osb_session_run(osb_sandbox *s, const char *id, const osb_command *what,
			    const osb_output *output, const osb_call *call, osb_run *ret,
			    osb_error *e);
OSB_API int osb_session_delete(osb_sandbox *s, const char *id, const osb_call *call, osb_error *e);

/* ---- code: interpreters that keep their state ---- */

/* `ret_id` has room for OSB_ID_MAX bytes. */
OSB_API int osb_code_create(osb_sandbox *s, const char *language, const char *cwd,
			    const osb_call *call, char *ret_id, osb_error *e);

/* In a context, or (NULL) in the language's own one. */
OSB_API int osb_code_run(osb_sandbox *s, const char *language, const char *context_id,
			 const char *code, const osb_output *output, const osb_call *call,
			 osb_run *ret, osb_error *e);
OSB_API int osb_code_interrupt(osb_sandbox *s, const char *context_id, const osb_call *call,
			       osb_error *e);
/* *ret_json: an array; `language` NULL = all. */
OSB_API int osb_code_list(osb_sandbox *s, const char *language, const osb_call *call,
			  char **ret_json, osb_error *e);
OSB_API int osb_code_delete(osb_sandbox *s, const char *context_id, const osb_call *call,
			    osb_error *e);
/* All of a language. */
OSB_API int osb_code_clear(osb_sandbox *s, const char *language, const osb_call *call,
			   osb_error *e);

OSB_END
