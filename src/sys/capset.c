/*
 * sys/capset.c - capget, capset and the bounding set.
 */
#include "sys/capset.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"

struct sets {
	struct __user_cap_header_struct head;
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
};

static int read_sets(struct sets *s, struct err *e)
{
	memset(s, 0, sizeof(*s));
	s->head.version = _LINUX_CAPABILITY_VERSION_3;
	if (syscall(SYS_capget, &s->head, s->data) < 0)
		return err_set(e, -errno, "capget: %m");
	return 0;
}

static int write_sets(struct sets *s, struct err *e)
{
	if (syscall(SYS_capset, &s->head, s->data) < 0)
		return err_set(e, -errno, "capset: %m");
	return 0;
}

int capset_raise_effective(struct err *e)
{
	struct sets s;
	int r = read_sets(&s, e);

	if (r < 0)
		return r;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		s.data[i].effective = s.data[i].permitted;
	return write_sets(&s, e);
}

int capset_keep_only(uint64_t mask, struct err *e)
{
	struct sets s;
	int r;

	/* Until the kernel knows no further capability. */
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (!(mask >> cap & 1) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return err_set(e, -errno, "drop capability %d: %m", cap);
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return err_set(e, -errno, "clear ambient capabilities: %m");
	r = read_sets(&s, e);
	if (r < 0)
		return r;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		s.data[i].permitted &= (uint32_t)(mask >> 32 * i);
		s.data[i].effective = s.data[i].permitted;
		s.data[i].inheritable = 0;
	}
	return write_sets(&s, e);
}
