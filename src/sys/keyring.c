/*
 * sys/keyring.c - keyctl(2), which glibc does not wrap.
 */
#include "sys/keyring.h"

#include <errno.h>
#include <linux/keyctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"

int keyring_join_new(struct err *e)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL, 0, 0, 0) < 0 && errno != ENOSYS)
		return err_set(e, -errno, "join a new session keyring: %m");
	return 0;
}
