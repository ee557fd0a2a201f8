/*
 * cli/cmd_copy.c - osb cp: files and directories into a sandbox and out of it.
 *
 * As with docker cp: what exists as a directory at the other end gets the source below it, else the
 * source becomes it.  Links are copied as what they lead to when they are named, and left out below
 * a directory.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/view.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/progress.h"

#define DEPTH_MAX 64

/* One way or the other. */
struct copy {
	struct cli *cli;
	osb_sandbox *box;
	const char *from, *to; /* `to` without a last slash */
	size_t files;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static char *without_slash(const char *path)
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	return mem_strndup(path, n);
}

/* ---- in ---- */

static int put_file(struct copy *k, const char *from, const char *to, mode_t mode)
{
	struct progress progress = {.cli = k->cli, .what = from};
	osb_transfer transfer = {progress_step, &progress};
	osb_cleanup(fd_closep) int fd = open(from, O_RDONLY | O_CLOEXEC);
	osb_file_mode how = {.mode = mode & 0777};
	int r;

	if (fd < 0)
		return cli_error(k->cli, "%s: %s", from, strerror(errno));
	r = osb_file_upload(k->box, fd, to, &how, &transfer, &k->cli->call, &k->cli->e);
	progress_end(&progress);
	k->files++;
	return cli_done(k->cli, r);
}

static int put_directory(struct copy *k, const char *to, mode_t mode)
{
	const char *paths[] = {to, NULL};
	osb_file_mode how = {.mode = mode & 0777};

	return cli_done(k->cli,
			osb_directory_create(k->box, paths, &how, &k->cli->call, &k->cli->e));
}

static struct copy *walking; /* nftw(3) takes no argument along */

static int put_entry(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	osb_cleanup(mem_freep) char *to =
		mem_printf("%s%s", walking->to, path + strlen(walking->from));

	(void)where;
	if (kind == FTW_D)
		return put_directory(walking, to, st->st_mode);
	if (kind == FTW_F && S_ISREG(st->st_mode))
		return put_file(walking, path, to, st->st_mode);
	if (kind == FTW_DNR || kind == FTW_NS)
		return cli_error(walking->cli, "%s cannot be read", path);
	fprintf(stderr, "osb: %s is left out: neither a file nor a directory\n", path);
	return 0;
}

/* What is it in there?  "" = nothing. */
static const char *kind_inside(struct copy *k, const char *path, osb_file_list **ret)
{
	const char *paths[] = {path, NULL};
	osb_error ignored;

	if (osb_file_stat(k->box, paths, &k->cli->call, ret, &ignored) < 0 || (*ret)->n != 1)
		return "";
	return (*ret)->items[0].type;
}

static int copy_in(struct copy *k)
{
	osb_cleanup(mem_freep) char *below = NULL;
	osb_file_list *there = NULL;
	struct stat st;
	int code;

	if (stat(k->from, &st) < 0)
		return cli_error(k->cli, "%s: %s", k->from, strerror(errno));
	if (strcmp(kind_inside(k, k->to, &there), "directory") == 0)
		k->to = below =
			mem_printf("%s/%s", strcmp(k->to, "/") ? k->to : "", base_name(k->from));
	osb_file_list_free(there);
	if (S_ISREG(st.st_mode))
		return put_file(k, k->from, k->to, st.st_mode);
	if (!S_ISDIR(st.st_mode))
		return cli_error(k->cli, "%s is neither a file nor a directory", k->from);
	walking = k;
	code = nftw(k->from, put_entry, 16, FTW_PHYS);
	return code < 0 ? cli_error(k->cli, "%s: %s", k->from, strerror(errno)) : code;
}

/* ---- out ---- */

static int get_file(struct copy *k, const char *from, const char *to, unsigned mode)
{
	struct progress progress = {.cli = k->cli, .what = from};
	osb_transfer transfer = {progress_step, &progress};
	osb_cleanup(fd_closep) int fd =
		open(to, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode & 0777);
	int r;

	if (fd < 0)
		return cli_error(k->cli, "%s: %s", to, strerror(errno));
	r = osb_file_download(k->box, from, fd, &transfer, &k->cli->call, &k->cli->e);
	progress_end(&progress);
	k->files++;
	return cli_done(k->cli, r);
}

static int make_directory(struct copy *k, const char *path, unsigned mode)
{
	if (mkdir(path, (mode & 0777) | 0700) < 0 && errno != EEXIST)
		return cli_error(k->cli, "%s: %s", path, strerror(errno));
	return 0;
}

/* The sandbox writes these names: they must stay below where they belong. */
static bool is_below(const char *path, const char *root)
{
	size_t n = strlen(root);
	struct view rest, word;

	if (strncmp(path, root, n) != 0 || path[n] != '/')
		return false;
	rest = view_of(path + n + 1);
	while (view_split(&rest, '/', &word))
		if (!word.len || view_is(word, ".") || view_is(word, ".."))
			return false;
	return true;
}

static int get_tree(struct copy *k, const char *root)
{
	osb_file_list *list = NULL;
	int code = cli_done(k->cli, osb_directory_list(k->box, root, DEPTH_MAX, &k->cli->call,
						       &list, &k->cli->e));

	for (size_t i = 0; code == 0 && i < list->n; i++) {
		const osb_file_info *f = &list->items[i];
		osb_cleanup(mem_freep) char *to = NULL;

		if (!f->path || !is_below(f->path, root)) {
			code = cli_error(k->cli, "the sandbox lists a path that is not below %s",
					 root);
			break;
		}
		to = mem_printf("%s%s", k->to, f->path + strlen(root));
		if (strcmp(f->type, "directory") == 0)
			code = make_directory(k, to, f->mode);
		else if (strcmp(f->type, "file") == 0)
			code = get_file(k, f->path, to, f->mode);
		else
			fprintf(stderr, "osb: %s is left out: a %s\n", f->path, f->type);
	}
	osb_file_list_free(list);
	return code;
}

static int copy_out(struct copy *k)
{
	osb_cleanup(mem_freep) char *below = NULL;
	osb_file_list *what = NULL;
	const char *kind = kind_inside(k, k->from, &what);
	struct stat st;
	int code;

	if (!kind[0]) {
		osb_file_list_free(what);
		return cli_error(k->cli, "%s: there is no such file in the sandbox", k->from);
	}
	if (stat(k->to, &st) == 0 && S_ISDIR(st.st_mode))
		k->to = below = mem_printf("%s/%s", k->to, base_name(k->from));
	if (strcmp(kind, "directory") == 0) {
		code = make_directory(k, k->to, what->items[0].mode);
		if (code == 0)
			code = get_tree(k, what->items[0].path);
	} else {
		code = get_file(k, k->from, k->to, what->items[0].mode);
	}
	osb_file_list_free(what);
	return code;
}

/* ---- which way ---- */

/* "ID:PATH": the path, with the id cut off in place; NULL = it is a path of this machine. */
static char *inside(char *text)
{
	char *colon = strchr(text, ':'), *slash = strchr(text, '/');

	if (!colon || colon == text || (slash && slash < colon))
		return NULL;
	*colon = '\0';
	return colon + 1;
}

int copy(struct cli *c)
{
	char *from = inside(c->args[0]), *to = inside(c->args[1]);
	osb_cleanup(mem_freep) char *source = NULL, *target = NULL;
	struct copy k = {.cli = c};
	int code;

	if (!from == !to)
		return cli_usage(c, "one of the two is in a sandbox, and written ID:/path");
	source = without_slash(from ? from : c->args[0]);
	target = without_slash(to ? to : c->args[1]);
	k.from = source;
	k.to = target;
	if (to)
		c->args[0] = c->args[1];
	k.box = cli_sandbox(c);
	if (!k.box)
		return CLI_FAILED;
	code = to ? copy_in(&k) : copy_out(&k);
	if (code == 0 && c->progress)
		fprintf(stderr, "%zu files copied\n", k.files);
	osb_sandbox_free(k.box);
	return code;
}
