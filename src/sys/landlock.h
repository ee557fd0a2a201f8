/*
 * sys/landlock.h - which files a process and its children can reach from now on.
 */
#pragma once

#include <stddef.h>

#include "base/macro.h"

struct err;

enum landlock_access {
	LANDLOCK_READ,	/* files and directories below it */
	LANDLOCK_WRITE, /* and make, change, rename and remove plain files there */
};

struct landlock_place {
	const char *path; /* left out when it does not exist */
	int fd;		  /* when there is no path; left out when it is -1 */
	enum landlock_access access;
};

/*
 * Nothing but these, for good; what is open stays open.  Needs no_new_privs.  0 also where the
 * kernel has no such thing: it is one wall of several.
 */
osb_must_check int landlock_confine(const struct landlock_place *places, size_t n, struct err *e);
