/*
 * sys/fsids.c - setfsuid drops the file system capabilities: they are put back at once.
 */
#include "sys/fsids.h"

#include <errno.h>
#include <sys/fsuid.h>

#include "base/err.h"
#include "sys/caps.h"

/* The calls return the old value; asking with -1 changes nothing and tells whether the change took.
 */
static int change(uint32_t id, struct err *e)
{
	(void)setfsgid(id);
	(void)setfsuid(id);
	if (setfsgid((gid_t)-1) != (int)id || setfsuid((uid_t)-1) != (int)id)
		return err_set(e, -EPERM, "setfsuid %u", id);
	return caps_raise_effective(e);
}

int fsids_become(uint32_t id, struct err *e)
{
	return change(id, e);
}

int fsids_restore(struct err *e)
{
	return change(0, e);
}
