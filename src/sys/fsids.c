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
int fsids_set(uint32_t uid, uint32_t gid, struct err *e)
{
	(void)setfsgid(gid);
	(void)setfsuid(uid);
	if (setfsgid((gid_t)-1) != (int)gid || setfsuid((uid_t)-1) != (int)uid)
		return err_set(e, -EPERM, "setfsuid %u, setfsgid %u", uid, gid);
	return caps_raise_effective(e);
}

int fsids_become(uint32_t id, struct err *e)
{
	return fsids_set(id, id, e);
}

int fsids_restore(struct err *e)
{
	return fsids_set(0, 0, e);
}
