/*
 * server/blobs.c - small blobs are written here, forgotten ones removed.
 */
#include "server/blobs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/hex.h"
#include "codec/sha256.h"
#include "server/state_dir.h"

#define DIRECTORY "/" STATE_DIR_BLOBS
#define PATH_SIZE (sizeof(DIRECTORY) + BLOB_DIGEST_SIZE + 8)

static void path_of(const char *digest, const char *suffix, char ret[static PATH_SIZE])
{
	const char *hex = strchr(digest, ':');

	snprintf(ret, PATH_SIZE, "%s/%.64s%s", DIRECTORY, hex ? hex + 1 : "", suffix);
}

int blob_write(struct view bytes, char ret[static BLOB_DIGEST_SIZE], struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	unsigned char sum[SHA256_BYTES];
	char path[PATH_SIZE], made[PATH_SIZE], hex[2 * SHA256_BYTES + 1];

	sha256_of(bytes, sum);
	hex_format(sum, sizeof(sum), hex);
	snprintf(ret, BLOB_DIGEST_SIZE, "sha256:%s", hex);
	path_of(ret, "", path);
	path_of(ret, ".new", made);
	fd = open(made, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	while (fd >= 0 && bytes.len > 0) {
		ssize_t n = write(fd, bytes.p, bytes.len);

		if (n < 0)
			return err_set(e, -errno, "write a blob: %m");
		bytes = view_skip(bytes, (size_t)n);
	}
	if (fd < 0 || rename(made, path) < 0)
		return err_set(e, -errno, "make a blob: %m");
	return 0;
}

void blob_remove(const char *digest)
{
	char path[PATH_SIZE];

	path_of(digest, "", path);
	(void)unlink(path);
}

void blobs_sweep(int64_t older_than_s)
{
	int64_t before = (int64_t)time(NULL) - older_than_s;
	DIR *d = opendir(DIRECTORY);
	struct dirent *entry;
	struct stat st;

	while (d && (entry = readdir(d)))
		if (entry->d_name[0] != '.' &&
		    fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    (int64_t)st.st_mtime < before)
			(void)unlinkat(dirfd(d), entry->d_name, 0); /* tried again next time */
	if (d)
		closedir(d);
}
