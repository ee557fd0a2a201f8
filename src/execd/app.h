/*
 * execd/app.h - what the daemon's parts share.
 *
 * One `struct app` exists; it is passed down, never global.  Each part keeps its own state
 * behind a pointer here.
 */
#pragma once

#include <stddef.h>
#include <sys/resource.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/strv.h"
#include "execd/metrics.h"

struct codes;
struct commands;
struct entry_log;
struct http_proxies;
struct http_server;
struct identity;
struct isolated;
struct loop;
struct options;
struct ptys;
struct reaper;
struct sessions;
struct sock_fprog;

struct app {
	struct loop *loop;
	struct http_server *server;
	const struct options *options;
	struct reaper *reaper;
	struct entry_log *entry_log; /* NULL: none was given */
	struct strv env; /* what started programs inherit: ours without execd's own settings */
	const struct sock_fprog *filter; /* system calls of what is started; NULL: all */
	struct rlimit nofile;		 /* open files that started programs may have */
	struct identity *identity;	 /* of what is started; NULL: ours */
	const char *home;		 /* of the daemon's user, for "~" */
	char *bash;			 /* where bash was found; NULL: not yet */
	char *sh;			 /* where sh was found when there was no bash */
	struct buf events; /* where outputs build events: shared scratch, empty between calls */
	size_t outputs_n;  /* its users */
	struct metrics_base metrics; /* the reading that /metrics compares with */
	struct commands *commands;
	struct codes *codes;
	struct list ending_drivers; /* of interpreters that nobody waits for */
	struct sessions *sessions;
	struct ptys *ptys;
	struct http_proxies *proxies;
	struct isolated *isolated;
};
