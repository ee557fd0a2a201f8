/*
 * cli/cmd_file.c - osb file ...
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/show.h"
#include "codec/json_writer.h"

#define COLUMNS "path size mode owner group created_at modified_at"

static int read_mode(struct cli *c, osb_file_mode *ret)
{
	const char *mode = cli_flag(c, "mode");

	*ret = (osb_file_mode){.owner = cli_flag(c, "owner"), .group = cli_flag(c, "group")};
	if (mode && !cli_mode(mode, &ret->mode))
		return cli_usage(c, "--mode: '%s' is no mode like 0644", mode);
	return 0;
}

/* ---- contents ---- */

/* Files are bytes; of the names of encodings only one changes any: Latin-1 has 256 characters, each
 * of which is one or two bytes of UTF-8. */
static int read_encoding(struct cli *c, bool *ret_latin)
{
	static const char *const same[] = {"utf-8", "utf8", "ascii", "us-ascii"};
	static const char *const latin[] = {"latin-1", "latin1", "iso-8859-1"};
	const char *name = cli_flag(c, "encoding");

	*ret_latin = false;
	for (size_t i = 0; name && i < ARRAY_LEN(latin); i++)
		*ret_latin = *ret_latin || view_iis(view_of(name), latin[i]);
	for (size_t i = 0; i < ARRAY_LEN(same); i++)
		if (!name || *ret_latin || view_iis(view_of(name), same[i]))
			return 0;
	return cli_usage(c, "--encoding: '%s' is none of utf-8, ascii, latin-1", name);
}

static int cat_latin(struct cli *c)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(CLI_JSON_MAX);
	char *bytes = NULL;
	size_t n = 0;
	int code = cli_done(c, osb_file_read(c->box, c->args[1], &c->call, &bytes, &n, &c->e));

	for (size_t i = 0; code == 0 && i < n; i++) {
		unsigned char ch = (unsigned char)bytes[i];

		if (ch >= 0x80 && buf_append_char(&text, (char)(0xc0 | ch >> 6)) < 0)
			code = cli_error(c, "the file is too large for this encoding");
		else if (buf_append_char(&text, (char)(ch >= 0x80 ? 0x80 | (ch & 0x3f) : ch)) < 0)
			code = cli_error(c, "the file is too large for this encoding");
	}
	osb_free(bytes);
	return code ? code : show_raw(c, buf_view(&text));
}

/* The other way round; false = a character that Latin-1 does not have. */
static bool to_latin(struct view text, struct buf *out)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char ch = (unsigned char)text.p[i];

		if (ch >= 0x80) {
			if ((ch & 0xfe) != 0xc2 || i + 1 == text.len)
				return false;
			ch = (unsigned char)((ch & 3) << 6 | ((unsigned char)text.p[++i] & 0x3f));
		}
		if (buf_append_char(out, (char)ch) < 0)
			return false;
	}
	return true;
}

int file_cat(struct cli *c)
{
	bool latin;
	int code = read_encoding(c, &latin);

	if (code)
		return code;
	if (latin)
		return cat_latin(c);
	return cli_done(
		c, osb_file_download(c->box, c->args[1], STDOUT_FILENO, NULL, &c->call, &c->e));
}

static int write_latin(struct cli *c, const char *content, const osb_file_mode *mode)
{
	osb_cleanup(buf_done) struct buf bytes = BUF_INIT(CLI_JSON_MAX);
	osb_cleanup(mem_freep) char *typed = NULL;
	struct view text = view_of(content), made;
	size_t n = 0;

	if (!content) {
		typed = cli_read_file(c, "-", &n);
		if (!typed)
			return CLI_FAILED;
		text = view_mem(typed, n);
	}
	if (!to_latin(text, &bytes))
		return cli_error(c, "the text has characters that Latin-1 does not have");
	made = buf_view(&bytes);
	return cli_done(
		c, osb_file_write(c->box, c->args[1], made.p, made.len, mode, &c->call, &c->e));
}

int file_write(struct cli *c)
{
	const char *content = cli_flag(c, "content");
	osb_file_mode mode;
	bool latin;
	int code = read_mode(c, &mode);

	if (code == 0)
		code = read_encoding(c, &latin);
	if (code)
		return code;
	if (latin)
		code = write_latin(c, content, &mode);
	else if (content)
		code = cli_done(c, osb_file_write(c->box, c->args[1], content, strlen(content),
						  &mode, &c->call, &c->e));
	else
		code = cli_done(c, osb_file_upload(c->box, STDIN_FILENO, c->args[1], &mode, NULL,
						   &c->call, &c->e));
	return code ? code : show_done(c, "Written: %s", c->args[1]);
}

int file_upload(struct cli *c)
{
	struct progress progress = {.cli = c, .what = c->args[1]};
	osb_transfer transfer = {progress_step, &progress};
	osb_cleanup(fd_closep) int fd = open(c->args[1], O_RDONLY | O_CLOEXEC);
	int code;

	if (fd < 0)
		return cli_error(c, "%s: %s", c->args[1], strerror(errno));
	code = osb_file_upload(c->box, fd, c->args[2], NULL, &transfer, &c->call, &c->e);
	progress_end(&progress);
	return code < 0 ? cli_fail(c) : show_done(c, "Uploaded: %s → %s", c->args[1], c->args[2]);
}

int file_download(struct cli *c)
{
	osb_cleanup(mem_freep) char *part = mem_printf("%s.part-%d", c->args[2], (int)getpid());
	struct progress progress = {.cli = c, .what = c->args[1]};
	osb_transfer transfer = {progress_step, &progress};
	osb_cleanup(fd_closep) int fd = -1;
	int r;

	/* Beside its place first: a broken download does not destroy what was there. */
	fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0) {
		return cli_error(c, "%s: %s", part, strerror(errno));
	}
	r = osb_file_download(c->box, c->args[1], fd, &transfer, &c->call, &c->e);
	progress_end(&progress);
	if (r == 0 && rename(part, c->args[2]) < 0)
		r = cli_error(c, "%s: %s", c->args[2], strerror(errno));
	else if (r < 0)
		r = cli_fail(c);
	if (r)
		(void)unlink(part);
	return r ? r : show_done(c, "Downloaded: %s → %s", c->args[1], c->args[2]);
}

int file_replace(struct cli *c)
{
	int code = cli_done(c, osb_file_replace(c->box, c->args[1], cli_flag(c, "old"),
						cli_flag(c, "new"), &c->call, NULL, &c->e));
	return code ? code : show_done(c, "Replaced in: %s", c->args[1]);
}

/* ---- names ---- */

/* One row a path: what became of it. */
static int show_rows(struct cli *c, const char *status)
{
	osb_cleanup(buf_done) struct buf json = BUF_INIT(CLI_JSON_MAX);
	struct json_writer w;

	json_writer_init(&w, &json);
	json_write_array(&w);
	for (size_t i = 1; i < c->args_n; i++) {
		json_write_object(&w);
		json_put_cstr(&w, "path", c->args[i]);
		json_put_cstr(&w, "status", status);
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	return json_writer_end(&w) < 0 ? CLI_FAILED : show_json(c, buf_view(&json), "path status");
}

/* The paths behind the sandbox's id; argv ends with NULL. */
static const char *const *paths_of(const struct cli *c)
{
	return (const char *const *)(c->args + 1);
}

int file_rm(struct cli *c)
{
	int code = cli_done(c, osb_file_delete(c->box, paths_of(c), &c->call, &c->e));
	return code ? code : show_rows(c, "deleted");
}

int file_rmdir(struct cli *c)
{
	int code = cli_done(c, osb_directory_delete(c->box, paths_of(c), &c->call, &c->e));
	return code ? code : show_rows(c, "removed");
}

int file_mkdir(struct cli *c)
{
	osb_file_mode mode;
	int code = read_mode(c, &mode);

	if (code)
		return code;
	code = cli_done(c, osb_directory_create(c->box, paths_of(c), &mode, &c->call, &c->e));
	return code ? code : show_rows(c, "created");
}

int file_mv(struct cli *c)
{
	int code = cli_done(c, osb_file_move(c->box, c->args[1], c->args[2], &c->call, &c->e));
	return code ? code : show_done(c, "Moved: %s → %s", c->args[1], c->args[2]);
}

int file_chmod(struct cli *c)
{
	osb_file_mode mode;
	int code = read_mode(c, &mode);

	if (code)
		return code;
	code = cli_done(c, osb_file_set_mode(c->box, c->args[1], &mode, &c->call, &c->e));
	return code ? code : show_done(c, "Permissions set: %s", c->args[1]);
}

/* ---- lists ---- */

static int digits(unsigned mode)
{
	int n = 0;

	for (int place = 1; mode; mode >>= 3, place *= 10)
		n += (int)(mode & 7) * place;
	return n;
}

static int show_list(struct cli *c, const osb_file_list *list)
{
	osb_cleanup(buf_done) struct buf json = BUF_INIT(CLI_JSON_MAX);
	struct json_writer w;

	json_writer_init(&w, &json);
	json_write_array(&w);
	for (size_t i = 0; i < list->n; i++) {
		const osb_file_info *f = &list->items[i];

		json_write_object(&w);
		put_text(&w, "path", f->path);
		put_text(&w, "entry_type", f->type);
		json_put_int(&w, "mode", digits(f->mode));
		put_text(&w, "owner", f->owner);
		put_text(&w, "group", f->group);
		json_put_int(&w, "size", f->size);
		put_time(&w, "modified_at", f->modified_at);
		put_time(&w, "created_at", f->created_at);
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	return json_writer_end(&w) < 0 ? CLI_FAILED : show_json(c, buf_view(&json), COLUMNS);
}

int file_info(struct cli *c)
{
	osb_file_list *list = NULL;
	int code = cli_done(c, osb_file_stat(c->box, paths_of(c), &c->call, &list, &c->e));
	if (code == 0)
		code = show_list(c, list);
	osb_file_list_free(list);
	return code;
}

int file_search(struct cli *c)
{
	osb_file_list *list = NULL;
	int code = cli_done(c, osb_file_search(c->box, c->args[1], cli_flag(c, "pattern"), &c->call,
					       &list, &c->e));
	if (code == 0)
		code = show_list(c, list);
	osb_file_list_free(list);
	return code;
}
