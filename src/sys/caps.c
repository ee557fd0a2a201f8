/*
 * sys/caps.c - capability sets: read, and the bounding set made small.
 */
#include "sys/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"

#define BIT(cap) (UINT64_C(1) << (cap))

static const uint64_t kept = BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) |
			     BIT(CAP_FSETID) | BIT(CAP_KILL) | BIT(CAP_SETGID) | BIT(CAP_SETUID) |
			     BIT(CAP_SETPCAP) | BIT(CAP_NET_BIND_SERVICE) | BIT(CAP_SETFCAP);

static uint64_t effective(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	if (syscall(SYS_capget, &head, data) < 0)
		return 0;
	return (uint64_t)data[1].effective << 32 | data[0].effective;
}

bool caps_can_mount(void)
{
	return effective() & BIT(CAP_SYS_ADMIN);
}

bool caps_can_change_user(void)
{
	uint64_t need = BIT(CAP_SETUID) | BIT(CAP_SETGID);

	return (effective() & need) == need;
}

int caps_limit(struct err *e)
{
	for (int cap = 0; cap < 64; cap++) {
		if (kept & BIT(cap))
			continue;
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
			continue;
		if (errno == EINVAL) /* the kernel knows no more of them */
			return 0;
		return err_set(e, -errno, "drop capability %d: %m", cap);
	}
	return 0;
}
