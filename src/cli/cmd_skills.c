/*
 * cli/cmd_skills.c - osb skills ...: what coding agents should know of osb, where they look for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/view.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/show.h"
#include "cli/skills.h"
#include "codec/json_writer.h"

#define TEXT_MAX (4u << 20)

/* Where an agent looks; "%s" is the skill's name.  One file for all of them has marks around each.
 */
static const struct target {
	const char *name, *path;
	bool head; /* it reads the head, too */
} targets[] = {
	{"claude", ".claude/skills/%s/SKILL.md", true},
	{"cursor", ".cursor/rules/%s.mdc", false},
	{"codex", ".codex/skills/%s/SKILL.md", true},
	{"copilot", ".github/copilot-instructions.md", false},
	{"windsurf", ".windsurfrules", false},
	{"cline", ".clinerules", false},
	{"opencode", ".agents/skills/%s/SKILL.md", true},
};

static bool is_shared(const struct target *t)
{
	return !strstr(t->path, "%s");
}

static const struct skill *find_skill(struct cli *c, const char *name)
{
	for (const struct skill *s = skills; s->name; s++)
		if (strcmp(s->name, name) == 0)
			return s;
	cli_usage(c, "there is no skill '%s'; 'osb skills list' has them", name);
	return NULL;
}

/* ---- texts ---- */

/* A line of the head: "description: ...". */
static struct view head_line(const struct skill *s, const char *key)
{
	struct view rest = view_of(s->text), line;

	while (view_split(&rest, '\n', &line))
		if (view_starts(line, view_of(key)) && line.len > strlen(key) + 2)
			return view_skip(line, strlen(key) + 2);
	return VIEW_NONE;
}

/* Behind the second "---". */
static const char *body_of(const struct skill *s)
{
	const char *end = strstr(s->text + 3, "\n---\n");

	return end ? end + 6 : s->text;
}

static const char *text_for(const struct target *t, const struct skill *s)
{
	return t->head ? s->text : body_of(s);
}

static char *path_for(const struct cli *c, const struct target *t, const struct skill *s)
{
	const char *scope = cli_flag(c, "scope"), *home = getenv("HOME");
	bool everywhere = scope && strcmp(scope, "global") == 0;
	char *below = is_shared(t) ? mem_strdup(t->path) : mem_printf(t->path, s->name);
	char *path = everywhere ? mem_printf("%s/%s", home ? home : "", below) : mem_strdup(below);

	free(below);
	return path;
}

/* ---- files ---- */

static char *read_text(const char *path)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(TEXT_MAX);
	osb_cleanup(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : 1;

	while (n > 0) {
		char *room = buf_reserve(&text, 4096);

		n = room ? read(fd, room, 4096) : 0;
		buf_commit(&text, n > 0 ? (size_t)n : 0);
	}
	return buf_take_str(&text);
}

static int make_parents(const char *path)
{
	osb_cleanup(mem_freep) char *copy = mem_strdup(path);

	for (char *p = strchr(copy + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		if (mkdir(copy, 0777) < 0 && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	return 0;
}

static int write_text(struct cli *c, const char *path, struct view text)
{
	osb_cleanup(fd_closep) int fd = -1;

	if (make_parents(path) == 0)
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0 || write(fd, text.p, text.len) != (ssize_t)text.len)
		return cli_error(c, "%s: %s", path, strerror(errno));
	return 0;
}

/* What stands between a skill's marks, marks included; empty = it is not there. */
static struct view marked(const char *text, const char *name)
{
	char begin[96], end[96];
	const char *from, *to;

	snprintf(begin, sizeof(begin), "<!-- BEGIN osb %s -->", name);
	snprintf(end, sizeof(end), "<!-- END osb %s -->\n", name);
	from = strstr(text, begin);
	to = from ? strstr(from, end) : NULL;
	return to ? view_mem(from, (size_t)(to - from) + strlen(end)) : VIEW_NONE;
}

/* The shared file without the skill, and with it again unless it goes. */
static int rewrite_shared(struct cli *c, const char *path, const struct skill *s, bool goes)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(TEXT_MAX);
	osb_cleanup(mem_freep) char *old = read_text(path);
	struct view block = marked(old, s->name);
	const char *from = block.len ? block.p : old + strlen(old);
	int r = buf_append(&text, old, (size_t)(from - old));

	if (r == 0 && !goes)
		r = buf_printf(&text, "<!-- BEGIN osb %s -->\n%s<!-- END osb %s -->\n", s->name,
			       body_of(s), s->name);
	if (r == 0)
		r = buf_append_str(&text, from + block.len);
	return r < 0 ? cli_error(c, "%s is too large", path) : write_text(c, path, buf_view(&text));
}

static bool is_installed(const struct target *t, const char *path, const struct skill *s)
{
	osb_cleanup(mem_freep) char *text = NULL;

	if (!is_shared(t))
		return access(path, F_OK) == 0;
	text = read_text(path);
	return marked(text, s->name).len > 0;
}

static bool is_same(const struct target *t, const char *path, const struct skill *s)
{
	osb_cleanup(mem_freep) char *text = read_text(path);

	return is_shared(t) ? strstr(text, body_of(s)) != NULL : strcmp(text, text_for(t, s)) == 0;
}

/* ---- one skill for one agent ---- */

static int install(struct cli *c, const struct target *t, const struct skill *s,
		   const char **ret_status)
{
	osb_cleanup(mem_freep) char *path = path_for(c, t, s);
	bool there = is_installed(t, path, s);

	*ret_status = there ? "updated" : "installed";
	if (there && is_same(t, path, s)) {
		*ret_status = "already_present";
		return 0;
	}
	if (there && !cli_has(c, "force"))
		return cli_error(c, "%s has another text; --force replaces it", path);
	return is_shared(t) ? rewrite_shared(c, path, s, false)
			    : write_text(c, path, view_of(text_for(t, s)));
}

static int uninstall(struct cli *c, const struct target *t, const struct skill *s,
		     const char **ret_status)
{
	osb_cleanup(mem_freep) char *path = path_for(c, t, s);

	*ret_status = "not_installed";
	if (!is_installed(t, path, s))
		return 0;
	*ret_status = "removed";
	if (is_shared(t))
		return rewrite_shared(c, path, s, true);
	if (unlink(path) < 0)
		return cli_error(c, "%s: %s", path, strerror(errno));
	/* The directory that was made for it; others stay. */
	if (view_ends(view_of(path), VIEW("/SKILL.md"))) {
		path[strlen(path) - strlen("/SKILL.md")] = '\0';
		(void)rmdir(path);
	}
	return 0;
}

/* ---- all of them ---- */

typedef int act_fn(struct cli *c, const struct target *t, const struct skill *s,
		   const char **ret_status);

static int act(struct cli *c, const struct target *t, const struct skill *s, act_fn *fn,
	       struct json_writer *w)
{
	osb_cleanup(mem_freep) char *path = path_for(c, t, s);
	const char *status = "";
	int code = fn(c, t, s, &status);

	if (code)
		return code;
	json_write_object(w);
	json_put_cstr(w, "skill", s->name);
	json_put_cstr(w, "target", t->name);
	json_put_cstr(w, "path", path);
	json_put_cstr(w, "status", status);
	json_write_object_end(w);
	return 0;
}

static bool is_meant(const char *wanted, const char *name)
{
	struct view rest = view_of(wanted), word;

	while (view_split(&rest, ',', &word))
		if (view_is(word, name) || view_is(word, "all"))
			return true;
	return false;
}

static int check_words(struct cli *c, const char *wanted)
{
	const char *scope = cli_flag(c, "scope");
	struct view rest = view_of(wanted), word;

	if (scope && strcmp(scope, "project") != 0 && strcmp(scope, "global") != 0)
		return cli_usage(c, "--scope is project or global");
	while (view_split(&rest, ',', &word)) {
		bool known = view_is(word, "all");

		for (size_t i = 0; i < ARRAY_LEN(targets); i++)
			known = known || view_is(word, targets[i].name);
		if (!known)
			return cli_usage(c, "--target: '" VIEW_FMT "' is no agent that is known",
					 VIEW_ARG(word));
	}
	if ((c->args_n == 0) != cli_has(c, "all-builtins"))
		return cli_usage(c, "name a skill, or say --all-builtins");
	return 0;
}

static int act_on_all(struct cli *c, act_fn *fn)
{
	osb_cleanup(buf_done) struct buf json = BUF_INIT(CLI_JSON_MAX);
	const char *wanted = cli_flag(c, "target") ? cli_flag(c, "target") : "claude";
	const struct skill *one = NULL;
	struct json_writer w;
	int code = check_words(c, wanted);

	if (code == 0 && c->args_n && !(one = find_skill(c, c->args[0])))
		code = CLI_USAGE;
	if (code)
		return code;
	json_writer_init(&w, &json);
	json_write_array(&w);
	for (const struct skill *s = skills; s->name && code == 0; s++)
		for (size_t i = 0; i < ARRAY_LEN(targets) && code == 0; i++)
			if ((!one || s == one) && is_meant(wanted, targets[i].name))
				code = act(c, &targets[i], s, fn, &w);
	json_write_array_end(&w);
	if (code || json_writer_end(&w) < 0)
		return code ? code : CLI_FAILED;
	return show_json(c, buf_view(&json), "skill target status path");
}

int skills_install(struct cli *c)
{
	return act_on_all(c, install);
}

int skills_uninstall(struct cli *c)
{
	return act_on_all(c, uninstall);
}

int skills_list(struct cli *c)
{
	osb_cleanup(buf_done) struct buf json = BUF_INIT(CLI_JSON_MAX);
	struct json_writer w;

	json_writer_init(&w, &json);
	json_write_array(&w);
	for (const struct skill *s = skills; s->name; s++) {
		json_write_object(&w);
		json_put_cstr(&w, "name", s->name);
		json_put_string(&w, "description", head_line(s, "description"));
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	return json_writer_end(&w) < 0 ? CLI_FAILED
				       : show_json(c, buf_view(&json), "name description");
}

int skills_show(struct cli *c)
{
	const struct skill *s = find_skill(c, c->args[0]);

	return s ? show_raw(c, view_of(s->text)) : CLI_USAGE;
}
