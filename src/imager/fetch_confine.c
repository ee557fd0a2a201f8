/*
 * imager/fetch_confine.c - what a process that speaks with strangers gives up first.
 *
 * What stays is what libcurl, the resolver and OpenSSL need: sockets, threads, reading files, and
 * writing in the blobs directory.  No programs, no tracing, no mounts, no namespaces, no keys.
 */
#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "imager/fetch.h"
#include "imager/job.h"
#include "imager/options.h"
#include "sys/allow_list.h"
#include "sys/caps.h"
#include "sys/landlock.h"
#include "sys/protect.h"

#define FDS_MAX	       256
#define ROUTE_PROTOCOL 0 /* of netlink */
#define MEMORY_MAX     (256u << 20)

static const char *const allowed[] = {
	/* connections */
	"bind",
	"connect",
	"epoll_create1",
	"epoll_ctl",
	"epoll_pwait",
	"epoll_wait",
	"eventfd2",
	"getpeername",
	"getsockname",
	"getsockopt",
	"pipe2",
	"pselect6",
	"recvfrom",
	"recvmmsg",
	"recvmsg",
	"select",
	"sendmmsg",
	"sendmsg",
	"sendto",
	"setsockopt",
	"shutdown",
	"socketpair",
	/* files: blobs, certificates, the resolver's configuration, name service libraries */
	"access",
	"dup",
	"faccessat",
	"faccessat2",
	"fadvise64",
	"fallocate",
	"fdatasync",
	"flock",
	"fstatfs",
	"fsync",
	"ftruncate",
	"getcwd",
	"getdents64",
	"lstat",
	"newfstatat",
	"open",
	"openat",
	"pread64",
	"pwrite64",
	"readlink",
	"readlinkat",
	"renameat",
	"renameat2",
	"stat",
	"statfs",
	"statx",
	"unlinkat",
	/* memory, threads */
	"get_robust_list",
	"membarrier",
	"sched_getaffinity",
	"set_tid_address",
};

/* No unix sockets: the sandboxes' daemons and the machine's services listen on those. */
static const int families[] = {AF_INET, AF_INET6};

static const unsigned long ioctls[] = {FIONREAD, FIONBIO, TIOCOUTQ, TCGETS};

static int allow_some(scmp_filter_ctx ctx)
{
	int r = allow_list_threads(ctx); /* the resolver's */

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(families); i++)
		r = allow_list_when(ctx, SCMP_SYS(socket),
				    SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)families[i], 0));
	/* The resolver asks which addresses the machine has. */
	if (r == 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2,
				     SCMP_A0(SCMP_CMP_EQ, AF_NETLINK, 0),
				     SCMP_A2(SCMP_CMP_EQ, ROUTE_PROTOCOL, 0));
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(ioctls); i++)
		r = allow_list_when(ctx, SCMP_SYS(ioctl), SCMP_A1(SCMP_CMP_EQ, ioctls[i], 0));
	/* Signals to ourselves. */
	if (r == 0)
		r = allow_list_when(ctx, SCMP_SYS(tgkill),
				    SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0));
	return r;
}

static int filter_calls(struct err *e)
{
	return allow_list_apply(allowed, ARRAY_LEN(allowed), allow_some, e);
}

/* What the resolver, TLS and the loader of libraries read; the blobs. */
static int keep_to_files(struct err *e)
{
	const struct landlock_place places[] = {
		{"/etc", -1, LANDLOCK_READ},
		/* Often links to elsewhere, where they are written. */
		{"/etc/resolv.conf", -1, LANDLOCK_READ},
		{"/etc/hosts", -1, LANDLOCK_READ},
		{"/etc/nsswitch.conf", -1, LANDLOCK_READ},
		{"/etc/ssl/certs", -1, LANDLOCK_READ},
		{"/usr", -1, LANDLOCK_READ},
		{"/lib", -1, LANDLOCK_READ},
		{"/lib64", -1, LANDLOCK_READ},
		{"/nix/store", -1, LANDLOCK_READ},
		{"/run/systemd/resolve", -1, LANDLOCK_READ},
		{"/dev/null", -1, LANDLOCK_READ},
		{"/dev/urandom", -1, LANDLOCK_READ},
		{getenv("SSL_CERT_FILE"), -1, LANDLOCK_READ},
		{getenv("SSL_CERT_DIR"), -1, LANDLOCK_READ},
		{NULL, JOB_DIR_FD, LANDLOCK_WRITE},
	};

	return landlock_confine(places, ARRAY_LEN(places), e);
}

static int become(const struct options *o, struct err *e)
{
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		return err_set(e, -errno, "keep capabilities: %m");
	if (setgroups(0, NULL) < 0 || setresgid(o->gid, o->gid, o->gid) < 0)
		return err_set(e, -errno, "become group %u: %m", o->gid);
	if (setresuid(o->uid, o->uid, o->uid) < 0)
		return err_set(e, -errno, "become user %u: %m", o->uid);
	/* For a moment: without them the bounding set cannot be emptied. */
	return caps_raise_effective(e);
}

int fetch_confine(const struct options *o, struct err *e)
{
	static const struct rlimit none, files = {FDS_MAX, FDS_MAX};
	int r = o->change_user ? become(o, e) : 0;

	if (r == 0)
		r = caps_drop_all(e);
	if (r < 0)
		return r;
	if (setrlimit(RLIMIT_CORE, &none) < 0 || setrlimit(RLIMIT_NOFILE, &files) < 0)
		return err_set(e, -errno, "set limits: %m");
	protect_limit_memory(MEMORY_MAX);
	protect_from_tracing();
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(e, -errno, "forbid new privileges: %m");
	r = keep_to_files(e);
	return r < 0 ? r : filter_calls(e);
}
