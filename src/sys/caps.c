/*
 * sys/caps.c - capget, capset and the bounding set.
 */
#include "sys/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"

#define BIT(cap) (UINT64_C(1) << (cap))

static const uint64_t kept = BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) |
			     BIT(CAP_FSETID) | BIT(CAP_KILL) | BIT(CAP_SETGID) | BIT(CAP_SETUID) |
			     BIT(CAP_SETPCAP) | BIT(CAP_NET_BIND_SERVICE) | BIT(CAP_SETFCAP);

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

static uint64_t effective(void)
{
	struct err ignored;
	struct sets s;

	if (read_sets(&s, &ignored) < 0)
		return 0;
	return (uint64_t)s.data[1].effective << 32 | s.data[0].effective;
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

int caps_raise_effective(struct err *e)
{
	struct sets s;
	int r = read_sets(&s, e);

	if (r < 0)
		return r;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		s.data[i].effective = s.data[i].permitted;
	return write_sets(&s, e);
}

static int limit_bounding(uint64_t mask, struct err *e)
{
	/* Until the kernel knows no further capability. */
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (!(mask >> cap & 1) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return err_set(e, -errno, "drop capability %d: %m", cap);
	return 0;
}

static int limit_own(uint64_t mask, struct err *e)
{
	struct sets s;
	int r;

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

int caps_keep_only(uint64_t mask, struct err *e)
{
	int r = limit_bounding(mask, e);

	return r < 0 ? r : limit_own(mask, e);
}

int caps_keep_at_most(uint64_t mask, struct err *e)
{
	return effective() & BIT(CAP_SETPCAP) ? caps_keep_only(mask, e) : limit_own(mask, e);
}

int caps_drop_all(struct err *e)
{
	return caps_keep_at_most(0, e);
}

int caps_keep_file_rights(struct err *e)
{
	return caps_keep_only(UINT64_C(1) << CAP_DAC_OVERRIDE | UINT64_C(1) << CAP_FOWNER, e);
}

/* The last is for trusted.* attributes alone: mounts and the like are for the caller to filter. */
int caps_keep_layer_rights(struct err *e)
{
	return caps_keep_only(BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) |
				      BIT(CAP_FSETID) | BIT(CAP_SETFCAP) | BIT(CAP_SYS_ADMIN),
			      e);
}
