/*
 * execd/reaper.h - as init: buries the orphans that nobody else waits for.
 *
 * Every direct child must be known here (execd/process does that), or its end is taken for an
 * orphan's.  Without init duty the registry is idle and SIGCHLD is not watched.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/macro.h"

struct err;
struct loop;
struct reaper;

/* The child has ended: reap it now, or keep it for later (false) and call reaper_scan() then.
 * With `final` there is no later. */
typedef bool reaper_ended_fn(void *arg, bool final);

/* `init`: watch SIGCHLD and reap everybody. */
osb_must_check int reaper_new(struct loop *l, bool init, struct reaper **ret, struct err *e);

/* Accepts NULL.  Kills the process group of every known child, and reaps it. */
void reaper_free(struct reaper *r);

void reaper_add(struct reaper *r, pid_t pid, reaper_ended_fn *ended, void *arg);
void reaper_remove(struct reaper *r, pid_t pid);

/* Looks for ended children again, soon. */
void reaper_scan(struct reaper *r);
