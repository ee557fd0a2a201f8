/*
 * sys/proc.h - processes by pidfd, and the start time that tells one holder of a pid from the next.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/macro.h"

struct err;

/* Clock ticks since boot at which `pid` started: field 22 of /proc/PID/stat. */
osb_must_check int proc_start_time(pid_t pid, uint64_t *ret, struct err *e);

/* A pidfd of the process that had this pid and started at that time; -ESRCH when it is gone. */
osb_must_check int proc_open(pid_t pid, uint64_t start_time, int *ret_pidfd, struct err *e);

/* A child that has ended: its status as of waitpid(2).  -EAGAIN while it runs. */
osb_must_check int proc_reap(int pidfd, int *ret_status);

/* SIGKILL; the pidfd becomes readable when the process has ended. */
void proc_kill(int pidfd);

/* SIGKILL to a process that is not our child; returns when it has ended. */
void proc_kill_and_await(int pidfd);
