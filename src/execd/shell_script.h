/*
 * execd/shell_script.h - what is said to a session's shell, and what it answers.  Pure.
 *
 * The shell reads its script from a socket (fd 0) and reports on a copy of it (fd 9); fd 8 is the
 * output.  A run is one `eval` whose redirections close both again, so that what it starts has
 * /dev/null for input and never sees the control channel.  Reports are frames between NUL
 * bytes, which no shell variable can hold.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct buf;
struct strv;

enum shell_kind { SHELL_BASH, SHELL_POSIX };

struct shell_script_run {
	uint64_t seq;
	struct view command;	 /* no NUL bytes */
	const char *cwd;	 /* absolute, or NULL: where the shell is */
	const struct strv *envs; /* for this run alone; or NULL */
};

/* Greets a fresh shell: descriptors, traps, then what an earlier shell knew and where it was. */
osb_must_check int shell_script_begin(struct buf *out, enum shell_kind kind, const char *cwd,
				      struct view state);

/* One run, its report, and the capture of the shell's state behind it. */
osb_must_check int shell_script_run(struct buf *out, enum shell_kind kind,
				    const struct shell_script_run *run);

/* `text` as one word of a POSIX shell. */
osb_must_check int shell_script_quote(struct buf *out, struct view text);

enum shell_frame_kind {
	SHELL_FRAME_NONE,  /* no whole frame in the input */
	SHELL_FRAME_OTHER, /* noise: skip it */
	SHELL_FRAME_RUN,   /* run `seq` ended with `code` */
	SHELL_FRAME_CWD,   /* text: the directory */
	SHELL_FRAME_STATE, /* text: a script that restores variables, functions, aliases */
	SHELL_FRAME_END,   /* the capture behind run `seq` is complete */
};

struct shell_frame {
	enum shell_frame_kind kind;
	uint64_t seq;
	int code;
	struct view text; /* borrowed from the input */
};

/* Takes the next frame off the front of *in; on NONE the rest stays. */
enum shell_frame_kind shell_frame_next(struct view *in, struct shell_frame *ret);

/* A name that a shell can take as a variable. */
bool shell_script_is_name(struct view name);
