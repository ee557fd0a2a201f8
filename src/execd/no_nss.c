/*
 * execd/no_nss.c - shuts glibc's name service out of the static program.
 *
 * libuv can ask who a user is; execd never lets it, since a static program cannot load the shared
 * parts that glibc would want.  Our own answer, "unknown", keeps that code from being linked.
 */
#include <grp.h>
#include <pwd.h>
#include <stddef.h>

int getpwuid_r(uid_t uid, struct passwd *entry, char *memory, size_t size, struct passwd **ret)
{
	*ret = NULL;
	return 0;
}

int getgrgid_r(gid_t gid, struct group *entry, char *memory, size_t size, struct group **ret)
{
	*ret = NULL;
	return 0;
}
