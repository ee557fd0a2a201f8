/*
 * box/harden.c - rlimits, keyring, capabilities, no_new_privs.
 */
#include "box/harden.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/err.h"
#include "sys/caps.h"
#include "sys/keyring.h"

/* Docker's set without NET_RAW, MKNOD and AUDIT_WRITE. */
#define BIT(cap) (UINT64_C(1) << (cap))
#define KEPT_CAPABILITIES                                                                          \
	(BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_FSETID) |              \
	 BIT(CAP_KILL) | BIT(CAP_SETGID) | BIT(CAP_SETUID) | BIT(CAP_SETPCAP) |                    \
	 BIT(CAP_NET_BIND_SERVICE) | BIT(CAP_SYS_CHROOT) | BIT(CAP_SETFCAP))

int harden_rlimits(struct err *e)
{
	static const struct {
		int what;
		rlim_t soft, hard;
	} limits[] = {
		/* Not 0: a host's program that collects core dumps is started, as root, even
		 * then.  One byte is the number that keeps it from being started; filter.c sees to
		 * it that it stays. */
		{RLIMIT_CORE, 1, 1},
		{RLIMIT_NOFILE, 65536, 1048576},
		{RLIMIT_MEMLOCK, 8 << 20, 8 << 20},
		{RLIMIT_MSGQUEUE, 819200, 819200},
		{RLIMIT_RTPRIO, 0, 0},
		{RLIMIT_NICE, 0, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		struct rlimit l;

		/* Never up: a warden without CAP_SYS_RESOURCE cannot, and need not. */
		if (getrlimit(limits[i].what, &l) < 0)
			return err_set(e, -errno, "getrlimit %d: %m", limits[i].what);
		l.rlim_max = MIN(l.rlim_max, limits[i].hard);
		l.rlim_cur = MIN(l.rlim_max, limits[i].soft);
		if (setrlimit(limits[i].what, &l) < 0)
			return err_set(e, -errno, "setrlimit %d: %m", limits[i].what);
	}
	return 0;
}

int harden_keyring(struct err *e)
{
	return keyring_join_new(e);
}

int harden_capabilities(struct err *e)
{
	return caps_keep_only(KEPT_CAPABILITIES, e);
}

int harden_no_new_privs(struct err *e)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(e, -errno, "prctl: %m");
	return 0;
}
