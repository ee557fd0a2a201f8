/*
 * sys/session.h - all processes of a session: what a terminal started, in whatever group.
 */
#pragma once

#include <sys/types.h>

/* Signals every process whose session id is `sid`, by /proc; nothing happens without it. */
void session_signal(pid_t sid, int signum);
