/*
 * cli/cmd_storage.c - osb snapshot ..., osb image ..., osb volume ...
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/num.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/show.h"
#include "cli/snake.h"
#include "codec/json.h"
#include "codec/json_writer.h"

#define SNAPSHOT_COLUMNS "id name sandbox_id status.state:STATUS created_at"
#define IMAGE_COLUMNS	 "names id size_bytes:SIZE users created_at"
#define VOLUME_COLUMNS	 "name created_at users"

/* --page and --page-size. */
static int read_page(struct cli *c, int *page, int *size)
{
	const char *const names[] = {"page", "page-size"};
	int *const to[] = {page, size};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *text = cli_flag(c, names[i]);
		uint32_t n = 0;

		if (text && (!num_parse_u32(view_of(text), &n) || n < 1 || n > INT32_MAX))
			return cli_usage(c, "--%s: '%s' is no number from 1 on", names[i], text);
		*to[i] = (int)n;
	}
	return cli_client(c) ? 0 : CLI_FAILED;
}

/* A file to read from or to write to; "-" is standard input or output.  -1 after a message. */
static int open_file(struct cli *c, const char *path, bool write)
{
	int fd;

	if (strcmp(path, "-") == 0)
		return dup(write ? STDOUT_FILENO : STDIN_FILENO);
	fd = write ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)
		   : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		cli_error(c, "%s: %s", path, strerror(errno));
	return fd;
}

/* ---- snapshots ---- */

static void put_snapshot(struct json_writer *w, const osb_snapshot *p)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	osb_cleanup(mem_freep) char *when = NULL;
	struct view changed = VIEW_NONE;
	struct err e = ERR_NONE;

	if (json_parse(view_of(p->json), 0, &v, &e) == 0 &&
	    json_str(json_get(json_get(v, "status"), "lastTransitionAt"), &changed))
		when = mem_strndup(changed.p, changed.len);
	json_write_object(w);
	json_put_cstr(w, "id", p->id);
	put_text(w, "sandbox_id", p->sandbox_id);
	put_text(w, "name", p->name);
	json_write_key(w, "status");
	json_write_object(w);
	json_put_cstr(w, "state", p->state);
	put_text(w, "reason", p->reason);
	put_text(w, "message", p->message);
	put_time(w, "last_transition_at", when);
	json_write_object_end(w);
	put_time(w, "created_at", p->created_at);
	json_write_object_end(w);
}

int snapshot_create(struct cli *c)
{
	struct progress progress = {.cli = c, .what = "taking a snapshot"};
	osb_cleanup(buf_done) struct buf json = BUF_INIT(CLI_JSON_MAX);
	osb_snapshot *p = NULL, *ready = NULL;
	struct json_writer w;
	int code =
		cli_done(c, osb_snapshot_create(c->box, cli_flag(c, "name"), &c->call, &p, &c->e));
	if (code == 0 && cli_has(c, "wait")) {
		int r;

		progress_wait(&progress);
		r = osb_snapshot_wait(c->client, p->id, 0, &c->call, &ready, &c->e);
		progress_end(&progress);
		code = cli_done(c, r);
	}
	if (code == 0 && c->quiet) {
		puts(p->id);
	} else if (code == 0) {
		json_writer_init(&w, &json);
		json_write_object(&w);
		json_put_cstr(&w, "id", p->id);
		json_put_cstr(&w, "sandbox_id", c->args[0]);
		put_text(&w, "name", p->name);
		json_put_cstr(&w, "status", ready ? ready->state : p->state);
		json_write_object_end(&w);
		code = json_writer_end(&w) < 0 ? CLI_FAILED : show_json(c, buf_view(&json), NULL);
	}
	osb_snapshot_free(ready);
	osb_snapshot_free(p);
	return code;
}

int snapshot_get(struct cli *c)
{
	osb_cleanup(buf_done) struct buf json = BUF_INIT(CLI_JSON_MAX);
	osb_snapshot *p = NULL;
	struct json_writer w;
	int code;

	if (!cli_client(c))
		return CLI_FAILED;
	code = cli_done(c, osb_snapshot_get(c->client, c->args[0], &c->call, &p, &c->e));
	if (code == 0) {
		json_writer_init(&w, &json);
		put_snapshot(&w, p);
		code = json_writer_end(&w) < 0 ? CLI_FAILED : show_json(c, buf_view(&json), NULL);
	}
	osb_snapshot_free(p);
	return code;
}

static int show_snapshots(struct cli *c, const osb_snapshot_page *page)
{
	osb_cleanup(buf_done) struct buf json = BUF_INIT(CLI_JSON_MAX);
	struct json_writer w;

	json_writer_init(&w, &json);
	json_write_object(&w);
	json_write_key(&w, "items");
	json_write_array(&w);
	for (size_t i = 0; i < page->items_n; i++)
		put_snapshot(&w, page->items[i]);
	json_write_array_end(&w);
	put_pagination(&w, page->page, page->page_size, page->total_items, page->total_pages,
		       page->has_next);
	json_write_object_end(&w);
	return json_writer_end(&w) < 0 ? CLI_FAILED
				       : show_json(c, buf_view(&json), SNAPSHOT_COLUMNS);
}

int snapshot_list(struct cli *c)
{
	osb_snapshot_page *list = NULL;
	int page = 0, size = 0, code = read_page(c, &page, &size);

	if (code)
		return code;
	code = cli_done(c, osb_snapshot_list(c->client, cli_flag(c, "sandbox-id"),
					     cli_flag(c, "name"), cli_flag(c, "state"), page, size,
					     &c->call, &list, &c->e));
	if (code == 0)
		code = show_snapshots(c, list);
	osb_snapshot_page_free(list);
	return code;
}

int snapshot_delete(struct cli *c)
{
	int code;

	if (!cli_client(c))
		return CLI_FAILED;
	code = cli_done(c, osb_snapshot_delete(c->client, c->args[0], &c->call, &c->e));
	return code ? code : show_done(c, "Snapshot deleted: %s", c->args[0]);
}

/* ---- archives ---- */

static int export(struct cli *c, int (*get)(osb_client *, const char *, int, const osb_transfer *,
					    const osb_call *, osb_error *))
{
	struct progress progress = {.cli = c, .what = c->args[0]};
	osb_transfer transfer = {progress_step, &progress};
	osb_cleanup(fd_closep) int fd = -1;
	int r;

	if (!cli_client(c))
		return CLI_FAILED;
	if (strcmp(c->args[1], "-") == 0 && isatty(STDOUT_FILENO))
		return cli_usage(c, "an archive is nothing for a terminal: name a file");
	fd = open_file(c, c->args[1], true);
	if (fd < 0)
		return CLI_FAILED;
	r = get(c->client, c->args[0], fd, &transfer, &c->call, &c->e);
	progress_end(&progress);
	return cli_done(c, r);
}

int snapshot_export(struct cli *c)
{
	return export(c, osb_snapshot_export);
}

int image_export(struct cli *c)
{
	return export(c, osb_image_export);
}

int image_import(struct cli *c)
{
	struct progress progress = {.cli = c, .what = c->args[0]};
	osb_transfer transfer = {progress_step, &progress};
	osb_cleanup(fd_closep) int fd = open_file(c, c->args[0], false);
	char *text = NULL;
	int r;

	if (fd < 0 || !cli_client(c))
		return CLI_FAILED;
	r = osb_image_import(c->client, fd, cli_flag(c, "name"), &transfer, &c->call, &text, &c->e);
	progress_end(&progress);
	return r < 0 ? cli_fail(c) : snake_show(c, text, IMAGE_COLUMNS);
}

/* ---- images ---- */

int image_list(struct cli *c)
{
	int page = 0, size = 0, code = read_page(c, &page, &size);
	char *text = NULL;

	if (code == 0)
		code = cli_done(c, osb_image_list(c->client, page, size, &c->call, &text, &c->e));
	return code ? code : snake_show(c, text, IMAGE_COLUMNS);
}

int image_get(struct cli *c)
{
	char *text = NULL;
	int code;

	if (!cli_client(c))
		return CLI_FAILED;
	code = cli_done(c, osb_image_get(c->client, c->args[0], &c->call, &text, &c->e));
	return code ? code : snake_show(c, text, NULL);
}

static int on_pull(void *arg, const osb_pull_progress *p)
{
	return progress_step(arg, p->done, p->total);
}

int image_pull(struct cli *c)
{
	osb_registry_auth auth = {cli_flag(c, "username"), cli_flag(c, "password")};
	struct progress progress = {.cli = c, .what = c->args[0]};
	char *text = NULL;
	int r;

	if (!cli_client(c))
		return CLI_FAILED;
	r = osb_image_pull(c->client, c->args[0], &auth, on_pull, &progress, &c->call, &text,
			   &c->e);
	progress_end(&progress);
	return r < 0 ? cli_fail(c) : snake_show(c, text, NULL);
}

int image_push(struct cli *c)
{
	osb_registry_auth auth = {cli_flag(c, "username"), cli_flag(c, "password")};
	const char *as = c->args_n > 1 ? c->args[1] : c->args[0];
	int code;

	if (!cli_client(c))
		return CLI_FAILED;
	code = cli_done(c, osb_image_push(c->client, c->args[0], as, &auth, &c->call, &c->e));
	return code ? code : show_done(c, "Pushed: %s → %s", c->args[0], as);
}

int image_rm(struct cli *c)
{
	int code;

	if (!cli_client(c))
		return CLI_FAILED;
	code = cli_done(
		c, osb_image_delete(c->client, c->args[0], cli_has(c, "force"), &c->call, &c->e));
	return code ? code : show_done(c, "Removed: %s", c->args[0]);
}

int image_prune(struct cli *c)
{
	char *text = NULL;
	int code;

	if (!cli_client(c))
		return CLI_FAILED;
	code = cli_done(c, osb_image_prune(c->client, cli_has(c, "all"), &c->call, &text, &c->e));
	return code ? code : snake_show(c, text, NULL);
}

/* ---- volumes ---- */

int volume_list(struct cli *c)
{
	int page = 0, size = 0, code = read_page(c, &page, &size);
	char *text = NULL;

	if (code == 0)
		code = cli_done(c, osb_volume_list(c->client, page, size, &c->call, &text, &c->e));
	return code ? code : snake_show(c, text, VOLUME_COLUMNS);
}

int volume_create(struct cli *c)
{
	char *text = NULL;
	int code;

	if (!cli_client(c))
		return CLI_FAILED;
	code = cli_done(c, osb_volume_create(c->client, c->args[0], &c->call, &text, &c->e));
	return code ? code : snake_show(c, text, NULL);
}

int volume_get(struct cli *c)
{
	char *text = NULL;
	int code;

	if (!cli_client(c))
		return CLI_FAILED;
	code = cli_done(c, osb_volume_get(c->client, c->args[0], &c->call, &text, &c->e));
	return code ? code : snake_show(c, text, NULL);
}

int volume_rm(struct cli *c)
{
	int code;

	if (!cli_client(c))
		return CLI_FAILED;
	code = cli_done(c, osb_volume_delete(c->client, c->args[0], &c->call, &c->e));
	return code ? code : show_done(c, "Removed: %s", c->args[0]);
}

int volume_fill(struct cli *c)
{
	struct progress progress = {.cli = c, .what = c->args[1]};
	osb_transfer transfer = {progress_step, &progress};
	osb_cleanup(fd_closep) int fd = open_file(c, c->args[1], false);
	int r;

	if (fd < 0 || !cli_client(c))
		return CLI_FAILED;
	r = osb_volume_fill(c->client, c->args[0], fd, &transfer, &c->call, NULL, &c->e);
	progress_end(&progress);
	return r < 0 ? cli_fail(c) : show_done(c, "Filled: %s", c->args[0]);
}
