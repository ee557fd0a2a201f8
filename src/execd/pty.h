/*
 * execd/pty.h - a shell in a terminal (or on three pipes), its output kept, its watchers told.
 *
 * The shell runs whether somebody watches or not.  When it has ended, it may be started again; the
 * offsets of its output go on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/macro.h"
#include "base/view.h"

struct app;
struct err;
struct pty;
struct pty_ring;

#define PTY_CHUNK_BYTES (32 * 1024)   /* of output at once */
#define PTY_RING_BYTES	(1024 * 1024) /* of output kept */

enum pty_mode { PTY_TERMINAL, PTY_PIPES };

enum pty_stream { PTY_STDOUT = 1, PTY_STDERR = 2 };

/* Somebody who follows the output.  `exited` comes last, after which it is not watching any more.
 */
struct pty_watcher {
	struct list link;
	void (*output)(struct pty_watcher *w, enum pty_stream s, uint64_t offset,
		       struct view bytes);
	void (*input_drained)(struct pty_watcher *w);
	void (*exited)(struct pty_watcher *w, int code);
};

/* `cwd` and `command` are copied; an empty command is an interactive shell. */
struct pty *pty_new(struct app *app, const char *id, const char *cwd, const char *command);

/* Accepts NULL.  Kills what runs; watchers are told nothing, they must be gone. */
void pty_free(struct pty *p);

/* Starts the shell: bash, else sh. */
osb_must_check int pty_start(struct pty *p, enum pty_mode mode, struct err *e);

const char *pty_id(const struct pty *p);
bool pty_running(const struct pty *p);
enum pty_mode pty_mode(const struct pty *p); /* of the last start */
const struct pty_ring *pty_output(const struct pty *p);

void pty_watch(struct pty *p, struct pty_watcher *w);
void pty_unwatch(struct pty_watcher *w); /* harmless when not watching */

/* The one who types, or NULL. */
struct pty_watcher *pty_holder(const struct pty *p);
void pty_set_holder(struct pty *p, struct pty_watcher *w);

/* While held, no output is read: the programs in the terminal wait. */
void pty_hold_output(struct pty *p, bool hold);

/* Types.  0, 1 = taken but stop until `input_drained` (of the holder), or -errno. */
osb_must_check int pty_type(struct pty *p, struct view bytes);

void pty_set_size(struct pty *p, uint16_t cols, uint16_t rows); /* nothing without a terminal */

/* To the shell's group and to the terminal's foreground group. */
void pty_signal(struct pty *p, int signum);

/* Kills what runs and calls gone(arg) when that has ended (at once when nothing runs). */
void pty_kill(struct pty *p, void (*gone)(void *arg), void *arg);
