/*
 * execd/start_file.c - waits for the start file, reads it, takes it apart.
 */
#include "execd/start_file.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "codec/json.h"
#include "execd/env.h"
#include "net/loop.h"
#include "sys/seqpacket.h"

#define ENTRYPOINT_MAX 4096
#define WORD_BYTES     64 /* of the datagram; what it says does not matter */

struct start_file_wait {
	int fd;
	struct loop_fd *watch;
	start_file_fn *fn;
	void *arg;
};

static int take_entrypoint(const struct json *root, struct strv *ret, struct err *e)
{
	const struct json *words = NULL;
	struct view word;

	if (json_field_array(root, "entrypoint", &words, e) < 0)
		return e->code;
	if (json_len(words) > ENTRYPOINT_MAX)
		return err_set(e, -E2BIG, "entrypoint has more than %d words", ENTRYPOINT_MAX);
	for (size_t i = 0; i < json_len(words); i++) {
		if (!json_str(json_at(words, i), &word) || view_has(word, '\0'))
			return err_set(e, -EINVAL, "entrypoint[%zu] is no string without NULs", i);
		strv_add_view(ret, word);
	}
	return 0;
}

static int take_string(const struct json *root, const char *key, char **ret, struct err *e)
{
	struct view text = VIEW_NONE;

	if (json_field_string(root, key, &text, e) < 0)
		return e->code;
	if (text.len > 0)
		*ret = mem_strndup(text.p, text.len);
	return 0;
}

int start_file_parse(struct view text, struct start_file *ret, struct err *e)
{
	osb_cleanup(start_file_done) struct start_file f = {0};
	const struct json *env = NULL;

	if (json_parse(text, 0, &f.root, e) < 0 || take_entrypoint(f.root, &f.entrypoint, e) < 0 ||
	    json_field_object(f.root, "env", &env, e) < 0 ||
	    (env && env_add_object(env, &f.env, e) < 0) ||
	    take_string(f.root, "cwd", &f.cwd, e) < 0 ||
	    take_string(f.root, "user", &f.user, e) < 0 ||
	    take_string(f.root, "token", &f.token, e) < 0 ||
	    take_string(f.root, "codePool", &f.code_pool, e) < 0 ||
	    take_string(f.root, "authority", &f.authority, e) < 0 ||
	    json_field_object(f.root, "lifecycle", &f.lifecycle, e) < 0)
		return err_ctx(e, "start file");
	*ret = f;
	f = (struct start_file){0};
	return 0;
}

void start_file_done(struct start_file *f)
{
	json_free(f->root);
	strv_done(&f->entrypoint);
	strv_done(&f->env);
	free(f->cwd);
	free(f->user);
	free(f->token);
	free(f->code_pool);
	free(f->authority);
	*f = (struct start_file){0};
}

/* A memory file has its size and never blocks. */
static int read_all(int fd, struct buf *ret, struct err *e)
{
	struct stat st;
	size_t left;
	char *to;

	if (fstat(fd, &st) < 0)
		return err_set(e, -errno, "start file: %m");
	if (!S_ISREG(st.st_mode) || st.st_size > START_FILE_MAX_BYTES)
		return err_set(e, -EINVAL, "the start file is no file, or too large");
	left = (size_t)st.st_size;
	to = buf_reserve(ret, left);
	for (off_t at = 0; to && left > 0;) {
		ssize_t n = pread(fd, to + at, left, at);

		if (n <= 0)
			return err_set(e, n < 0 ? -errno : -EIO, "start file: it is shorter now");
		at += n;
		left -= (size_t)n;
		buf_commit(ret, (size_t)n);
	}
	return 0;
}

static int receive(int fd, struct start_file *ret, struct err *e)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(START_FILE_MAX_BYTES);
	osb_cleanup(fd_closep) int file = -1;
	int fds[SEQPACKET_MAX_FDS], r;
	char word[WORD_BYTES];

	r = seqpacket_receive(fd, word, sizeof(word), fds, e);
	if (r < 0)
		return r;
	file = fds[0];
	seqpacket_close(fds, 1);
	if (r == 0)
		return 0;
	if (file < 0)
		return err_set(e, -EINVAL, "a start message without its file");
	r = read_all(file, &text, e);
	if (r == 0)
		r = start_file_parse(buf_view(&text), ret, e);
	return r < 0 ? r : 1;
}

static void on_message(void *arg, int fd, unsigned events)
{
	struct start_file_wait *w = arg;
	struct err e = ERR_NONE;
	struct start_file f;
	int r = receive(fd, &f, &e);

	if (r == -EAGAIN)
		return;
	loop_fd_want(w->watch, 0);
	w->fn(w->arg, r > 0 ? &f : NULL, &e);
}

/* What is done for the first time (pages, the hash's seed) is done now, not when a client waits. */
static void rehearse(void)
{
	struct err e = ERR_NONE;
	struct start_file f;

	if (start_file_parse(VIEW("{\"entrypoint\":[\"a\"],\"env\":{\"A\":\"b\"}}"), &f, &e) == 0)
		start_file_done(&f);
}

int start_file_wait_new(struct loop *l, int fd, start_file_fn *fn, void *arg,
			struct start_file_wait **ret, struct err *e)
{
	struct start_file_wait *w = mem_new(struct start_file_wait);
	int r;

	w->fd = fd;
	w->fn = fn;
	w->arg = arg;
	r = loop_fd_new(l, fd, on_message, w, &w->watch, e);
	if (r < 0) {
		free(w);
		return err_ctx(e, "the start socket (descriptor %d)", fd);
	}
	loop_fd_want(w->watch, LOOP_READ);
	rehearse();
	*ret = w;
	return 0;
}

void start_file_wait_free(struct start_file_wait *w)
{
	if (!w)
		return;
	loop_fd_free(w->watch);
	fd_close(w->fd);
	free(w);
}
