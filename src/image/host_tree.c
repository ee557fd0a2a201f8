/*
 * image/host_tree.c - generated files, and the few of the host's that its programs need.
 *
 * What is copied is named here, file by file; a directory is copied only as far as its links and
 * names are known to be harmless.  No directory of the host but /usr is ever shown as it is.
 */
#include "image/host_tree.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/view.h"
#include "codec/resolv.h"
#include "codec/sha256.h"
#include "image/host_java.h"
#include "image/host_text.h"

/* Changes whenever this file or host_text.c would make another tree from the same host. */
#define LAYOUT "host image 2"

#define COPY_MAX_BYTES (8 << 20)

static const struct {
	const char *path;
	mode_t mode;
} dirs[] = {
	{"usr", 0755},
	{"proc", 0555},
	{"sys", 0555},
	{"dev", 0755},
	{"run", 0755},
	{"run/lock", 01777},
	{"tmp", 01777},
	{"root", 0700},
	{"home", 0755},
	{"mnt", 0755},
	{"media", 0755},
	{"srv", 0755},
	{"opt", 0755},
	{"opt/code-interpreter", 0755},
	{"var", 0755},
	{"var/tmp", 01777},
	{"var/lib", 0755},
	{"var/cache", 0755},
	{"var/log", 0755},
	{"var/spool", 0755},
	{"etc", 0755},
	{"etc/skel", 0755},
	{"etc/profile.d", 0755},
	{"etc/pam.d", 0755},
	{"etc/alternatives", 0755},
	{"etc/ld.so.conf.d", 0755},
	{"etc/ssl", 0755},
	{"etc/ssl/certs", 0755},
	{"etc/ssl/certs/java", 0755},
	{"etc/pki", 0755},
	{"etc/pki/tls", 0755},
	{"etc/pki/tls/certs", 0755},
};

static const char *const links[][2] = {
	{"/run", "var/run"},
	{"/run/lock", "var/lock"},
	{"../usr/lib/os-release", "etc/os-release"},
	{"/proc/self/mounts", "etc/mtab"},
};

/* Links of the host's root into its /usr. */
static const char *const usr_links[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"};

/* Single files, absent ones left out. */
static const char *const files[] = {
	"etc/ld.so.cache",
	"etc/ld.so.conf",
	"etc/localtime",
	"etc/timezone",
	"etc/debian_version",
	"etc/mime.types",
	"etc/protocols",
	"etc/services",
	"etc/ssl/openssl.cnf",
	"etc/ssl/certs/ca-certificates.crt",
	"etc/ssl/certs/java/cacerts",
	"etc/pki/tls/certs/ca-bundle.crt",
};

/* Directories of which links and/or files are taken. */
static const struct {
	const char *path;
	const char *suffix; /* of regular files that are taken; NULL = none */
} lists[] = {
	{"etc/alternatives", NULL},
	{"etc/ssl/certs", NULL},
	{"etc/ld.so.conf.d", ".conf"},
};

static int make_dirs(int root_fd, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		if (mkdirat(root_fd, dirs[i].path, 0755) < 0 ||
		    fchmodat(root_fd, dirs[i].path, dirs[i].mode, 0) < 0)
			return err_set(e, -errno, "mkdir %s: %m", dirs[i].path);
	return 0;
}

static int make_link(int root_fd, const char *to, const char *path, struct err *e)
{
	if (symlinkat(to, root_fd, path) < 0 && errno != EEXIST)
		return err_set(e, -errno, "link %s: %m", path);
	return 0;
}

static int make_links(int root_fd, struct err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(links); i++)
		r = make_link(root_fd, links[i][0], links[i][1], e);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(usr_links); i++) {
		char path[16], to[32];
		struct stat st;

		snprintf(path, sizeof(path), "/%s", usr_links[i]);
		snprintf(to, sizeof(to), "usr/%s", usr_links[i]);
		/* On a host that does not merge them the loader must still be found. */
		if (lstat(path, &st) == 0)
			r = make_link(root_fd, to, usr_links[i], e);
	}
	return r;
}

static int copy_file(int from_fd, int root_fd, const char *path, struct err *e)
{
	osb_cleanup(fd_closep) int to = -1;
	struct stat st;
	off_t left;

	if (fstat(from_fd, &st) < 0)
		return err_set(e, -errno, "stat /%s: %m", path);
	if (!S_ISREG(st.st_mode) || st.st_size > COPY_MAX_BYTES)
		return 0;
	to = openat(root_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (to < 0)
		return err_set(e, -errno, "create %s: %m", path);
	for (left = st.st_size; left > 0;) {
		ssize_t n = sendfile(to, from_fd, NULL, (size_t)left);

		if (n < 0)
			return err_set(e, -errno, "copy /%s: %m", path);
		if (n == 0)
			break;
		left -= n;
	}
	return 0;
}

/* Links stay links if they lead into /usr; else the file behind them is copied. */
static int take_file(int root_fd, const char *path, struct err *e)
{
	osb_cleanup(fd_closep) int from = -1;
	char absolute[PATH_MAX], to[PATH_MAX];
	ssize_t n;

	snprintf(absolute, sizeof(absolute), "/%s", path);
	n = readlink(absolute, to, sizeof(to) - 1);
	if (n > 0) {
		to[n] = '\0';
		if (view_starts(view_of(to), VIEW("/usr/")))
			return make_link(root_fd, to, path, e);
	}
	from = open(absolute, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return from < 0 ? 0 : copy_file(from, root_fd, path, e);
}

/* Into /usr (its manuals left out), or to a neighbour. */
static bool is_harmless(const char *to)
{
	if (view_starts(view_of(to), VIEW("/usr/share/man/")))
		return false;
	return view_starts(view_of(to), VIEW("/usr/")) || !strchr(to, '/');
}

static int take_entry(int root_fd, int dir_fd, const char *dir, const struct dirent *entry,
		      const char *suffix, struct err *e)
{
	osb_cleanup(fd_closep) int from = -1;
	char path[PATH_MAX], to[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
	n = readlinkat(dir_fd, entry->d_name, to, sizeof(to) - 1);
	if (n > 0) {
		to[n] = '\0';
		return is_harmless(to) ? make_link(root_fd, to, path, e) : 0;
	}
	if (!suffix || !view_ends(view_of(entry->d_name), view_of(suffix)))
		return 0;
	from = openat(dir_fd, entry->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	return from < 0 ? 0 : copy_file(from, root_fd, path, e);
}

static int take_list(int root_fd, const char *dir, const char *suffix, struct err *e)
{
	struct dirent *entry;
	char absolute[64];
	int r = 0;
	DIR *d;

	snprintf(absolute, sizeof(absolute), "/%s", dir);
	d = opendir(absolute);
	while (r == 0 && d && (entry = readdir(d)))
		if (entry->d_name[0] != '.')
			r = take_entry(root_fd, dirfd(d), dir, entry, suffix, e);
	if (d)
		closedir(d);
	return r;
}

/* Some look only where Debian keeps the certificates, some only where Fedora does. */
static int share_certificates(int root_fd, struct err *e)
{
	static const char debian[] = "etc/ssl/certs/ca-certificates.crt";
	static const char fedora[] = "etc/pki/tls/certs/ca-bundle.crt";
	int r = 0;

	if (faccessat(root_fd, debian, F_OK, 0) == 0)
		r = make_link(root_fd, "/etc/ssl/certs/ca-certificates.crt", fedora, e);
	else if (faccessat(root_fd, fedora, F_OK, 0) == 0)
		r = make_link(root_fd, "/etc/pki/tls/certs/ca-bundle.crt", debian, e);
	if (r == 0)
		r = make_link(root_fd, "certs/ca-certificates.crt", "etc/ssl/cert.pem", e);
	return r;
}

static int make_home(int root_fd, struct err *e)
{
	if (mkdirat(root_fd, "home/sandbox", 0755) < 0 ||
	    fchownat(root_fd, "home/sandbox", HOST_TEXT_USER_ID, HOST_TEXT_USER_ID, 0) < 0)
		return err_set(e, -errno, "make home/sandbox: %m");
	return 0;
}

int host_tree_fill(int root_fd, const struct resolv_conf *dns, struct err *e)
{
	int r = make_dirs(root_fd, e);

	if (r == 0)
		r = make_links(root_fd, e);
	if (r == 0)
		r = host_text_write(root_fd, dns, e);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(files); i++)
		r = take_file(root_fd, files[i], e);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(lists); i++)
		r = take_list(root_fd, lists[i].path, lists[i].suffix, e);
	if (r == 0)
		r = host_java_copy(root_fd, e);
	if (r == 0)
		r = share_certificates(root_fd, e);
	if (r == 0)
		r = make_home(root_fd, e);
	return r;
}

static void stamp_path(const char *path, struct sha256 *s)
{
	char absolute[64], text[128] = "-\n";
	struct stat st;

	snprintf(absolute, sizeof(absolute), "/%s", path);
	if (stat(absolute, &st) == 0)
		snprintf(text, sizeof(text), "%ju %jd %jd.%09ld\n", (uintmax_t)st.st_ino,
			 (intmax_t)st.st_size, (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	sha256_add(s, view_of(text));
}

void host_tree_stamp(const struct resolv_conf *dns, struct sha256 *s)
{
	sha256_add(s, VIEW(LAYOUT));
	sha256_add(s, view_mem(dns->servers, dns->n * sizeof(dns->servers[0])));
	for (size_t i = 0; i < ARRAY_LEN(usr_links); i++)
		stamp_path(usr_links[i], s);
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		stamp_path(files[i], s);
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		stamp_path(lists[i].path, s);
	host_java_stamp(s);
}
