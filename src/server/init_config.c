/*
 * server/init_config.c - the file is its owner's alone: there is a key in it.
 */
#include "server/init_config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/rand.h"
#include "server/config_schema.h"
#include "server/options.h"

#define FILE_MAX_BYTES 65536

static int write_whole(int fd, struct view text, const char *path, struct err *e)
{
	while (text.len > 0) {
		ssize_t n = write(fd, text.p, text.len);

		if (n < 0)
			return err_set(e, -errno, "write '%s': %m", path);
		text = view_skip(text, (size_t)n);
	}
	return 0;
}

int init_config(const struct options *o, char **ret_path, struct err *e)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(FILE_MAX_BYTES);
	osb_cleanup(mem_freep) char *path = options_config_path(o->path ? o->path : o->config);
	osb_cleanup(fd_closep) int fd = -1;
	char key[RAND_HEX_LEN + 1];
	int r;

	if (!path)
		return err_set(e, -ENOENT, "there is no home directory; name a file");
	rand_hex(key);
	r = config_write_file(&text, o->example != NULL, key);
	if (r < 0)
		return err_set(e, r, "the configuration is too large");
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (o->force ? O_TRUNC : O_EXCL), 0600);
	if (fd < 0 && errno == EEXIST)
		return err_set(e, -EEXIST, "'%s' is there already; --force replaces it", path);
	if (fd < 0)
		return err_set(e, -errno, "create '%s': %m", path);
	r = write_whole(fd, buf_view(&text), path, e);
	if (r == 0)
		*ret_path = take_ptr(path);
	return r;
}
