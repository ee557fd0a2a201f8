/*
 * image/host_java.c - see host_java.h.
 *
 * Without jvm.cfg no java starts, and without java.security none does anything.  Directories and
 * files are taken by the names that the package gives them.
 */
#include "image/host_java.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/view.h"
#include "codec/sha256.h"

#define FILE_MAX_BYTES (1 << 20)
#define PREFIX	       "java-"
#define SUFFIX	       "-openjdk"

static const char *const dirs[] = {
	"",
	"/jfr",
	"/management",
	"/security",
	"/security/policy",
	"/security/policy/limited",
	"/security/policy/unlimited",
};

static const char *const suffixes[] = {
	".cfg", ".properties", ".properties.ja", ".security", ".policy", ".certs", ".dat", ".jfc",
};

static bool is_wanted(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++)
		if (view_ends(view_of(name), view_of(suffixes[i])))
			return true;
	return false;
}

static int copy_file(int from_dir, int to_dir, const char *name, struct err *e)
{
	osb_cleanup(fd_closep) int from =
		openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	osb_cleanup(fd_closep) int to = -1;
	struct stat st;

	if (from < 0 || fstat(from, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > FILE_MAX_BYTES)
		return 0;
	to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (to < 0)
		return err_set(e, -errno, "create %s: %m", name);
	for (off_t left = st.st_size; left > 0;) {
		ssize_t n = sendfile(to, from, NULL, (size_t)left);

		if (n < 0)
			return err_set(e, -errno, "copy %s: %m", name);
		if (n == 0)
			break;
		left -= n;
	}
	return 0;
}

/* "/etc/java-17-openjdk/security", say; one that is missing is left out. */
static int copy_dir(int root_fd, const char *path, struct err *e)
{
	osb_cleanup(fd_closep) int to = -1;
	struct dirent *entry;
	DIR *d = opendir(path);
	int r = 0;

	if (!d)
		return 0;
	if (mkdirat(root_fd, path + 1, 0755) < 0 && errno != EEXIST)
		r = err_set(e, -errno, "mkdir %s: %m", path);
	to = openat(root_fd, path + 1, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r == 0 && to < 0)
		r = err_set(e, -errno, "open %s: %m", path);
	while (r == 0 && (entry = readdir(d)))
		if (is_wanted(entry->d_name))
			r = copy_file(dirfd(d), to, entry->d_name, e);
	closedir(d);
	return r;
}

static bool is_jdk(const char *name)
{
	return view_starts(view_of(name), VIEW(PREFIX)) && view_ends(view_of(name), VIEW(SUFFIX));
}

int host_java_copy(int root_fd, struct err *e)
{
	struct dirent *entry;
	DIR *d = opendir("/etc");
	int r = 0;

	while (r == 0 && d && (entry = readdir(d)))
		for (size_t i = 0; r == 0 && is_jdk(entry->d_name) && i < ARRAY_LEN(dirs); i++) {
			osb_cleanup(mem_freep) char *path =
				mem_printf("/etc/%s%s", entry->d_name, dirs[i]);

			r = copy_dir(root_fd, path, e);
		}
	if (d)
		closedir(d);
	return r;
}

/* Packages replace files: a directory's time tells. */
void host_java_stamp(struct sha256 *s)
{
	struct dirent **entries;
	int n = scandir("/etc", &entries, NULL, alphasort);

	for (int i = 0; i < n; i++) {
		for (size_t k = 0; is_jdk(entries[i]->d_name) && k < ARRAY_LEN(dirs); k++) {
			osb_cleanup(mem_freep) char *path =
				mem_printf("/etc/%s%s", entries[i]->d_name, dirs[k]);
			struct stat st;

			if (stat(path, &st) == 0) {
				osb_cleanup(mem_freep) char *line =
					mem_printf("%s %jd.%09ld\n", path,
						   (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);

				sha256_add(s, view_of(line));
			}
		}
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}
