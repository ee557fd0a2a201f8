/*
 * cli/parse.c - the command line, by the table.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/view.h"
#include "cli/cli.h"

const struct command *command_find(const char *path)
{
	for (const struct command *it = cli_commands; it->path; it++)
		if (strcmp(it->path, path) == 0)
			return it;
	return NULL;
}

const char *path_behind(const char *path, const char *prefix)
{
	size_t n = strlen(prefix);

	if (!n)
		return path;
	return strncmp(path, prefix, n) == 0 && path[n] == ' ' ? path + n + 1 : NULL;
}

void command_arity(const struct command *command, size_t *ret_min, size_t *ret_max)
{
	struct view rest = view_of(command->arguments ? command->arguments : ""), word;

	*ret_min = *ret_max = 0;
	while (view_split(&rest, ' ', &word)) {
		if (!word.len || view_is(word, "--"))
			continue;
		*ret_min += view_starts(word, VIEW("[")) ? 0 : 1;
		if (view_find_view(word, VIEW("...")) < word.len)
			*ret_max = SIZE_MAX;
		else if (*ret_max != SIZE_MAX)
			*ret_max += 1;
	}
}

int cli_usage(struct cli *c, const char *fmt, ...)
{
	const char *path = c->command ? c->command->path : "";
	va_list ap;

	fputs("osb: ", stderr);
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\nTry 'osb %s%s--help'.\n", path, path[0] ? " " : "");
	return CLI_USAGE;
}

/* ---- which command ---- */

/* Does any command begin with these words? */
static bool is_beginning(const char *words)
{
	size_t n = strlen(words);

	for (const struct command *it = cli_commands; it->path; it++)
		if (strncmp(it->path, words, n) == 0 && (it->path[n] == ' ' || !it->path[n]))
			return true;
	return false;
}

/* The longest one that the words name; *ret_n of them. */
static const struct command *longest(char **words, size_t n, char *seen, size_t size, size_t *ret_n)
{
	const struct command *found = NULL;

	seen[0] = '\0';
	for (size_t i = 0; i < n && i < 4; i++) {
		char next[128];

		snprintf(next, sizeof(next), "%.100s%s%.20s", seen, i ? " " : "", words[i]);
		if (!is_beginning(next))
			break;
		snprintf(seen, size, "%s", next);
		*ret_n = i + 1;
		if (command_find(next))
			found = command_find(next);
	}
	return found;
}

/* ---- flags ---- */

static const struct flag output_flag = {'o', "output", "FORMAT", FLAG_ONCE, ""};
static const struct flag help_flag = {'h', "help", NULL, FLAG_ONCE, ""};

static const struct flag *in_list(const struct flag *list, struct view name, char letter)
{
	for (; list && list->name; list++)
		if ((letter && list->letter == letter) || (!letter && view_is(name, list->name)))
			return list;
	return NULL;
}

static const struct flag *find_flag(const struct command *command, struct view name, char letter)
{
	const struct flag *found = command ? in_list(command->flags, name, letter) : NULL;

	if (!found && command && command->outputs &&
	    (letter ? letter == 'o' : view_is(name, "output")))
		found = &output_flag;
	if (!found && (letter ? letter == 'h' : view_is(name, "help")))
		found = &help_flag;
	return found ? found : in_list(cli_globals, name, letter);
}

static int keep(struct cli *c, const struct flag *flag, const char *value)
{
	if (c->given_n == CLI_VALUES_MAX)
		return cli_usage(c, "more than %d options", CLI_VALUES_MAX);
	c->given[c->given_n++] = (struct given){flag, value ? value : ""};
	return 0;
}

/* "--name", "--name=value", "--name value"; *i is moved over what was used. */
static int take_long(struct cli *c, char **words, size_t n, size_t *i)
{
	struct view text = view_skip(view_of(words[*i]), 2);
	size_t equals = view_find(text, '=');
	const struct flag *flag = find_flag(c->command, view_first(text, equals), 0);

	if (!flag)
		return cli_usage(c, "there is no option '--" VIEW_FMT "'",
				 VIEW_ARG(view_first(text, equals)));
	if (!flag->value)
		return equals < text.len ? cli_usage(c, "option '--%s' takes no value", flag->name)
					 : keep(c, flag, NULL);
	if (equals < text.len)
		return keep(c, flag, text.p + equals + 1);
	if (*i + 1 >= n)
		return cli_usage(c, "option '--%s' needs a value: %s", flag->name, flag->value);
	return keep(c, flag, words[++*i]);
}

/* "-a", "-avalue", "-a value", "-ab". */
static int take_short(struct cli *c, char **words, size_t n, size_t *i)
{
	for (const char *p = words[*i] + 1; *p; p++) {
		const struct flag *flag = find_flag(c->command, VIEW_NONE, *p);
		int r;

		if (!flag)
			return cli_usage(c, "there is no option '-%c'", *p);
		if (flag->value && p[1])
			return keep(c, flag, p + 1 + (p[1] == '='));
		if (flag->value && *i + 1 >= n)
			return cli_usage(c, "option '-%c' needs a value: %s", *p, flag->value);
		r = keep(c, flag, flag->value ? words[++*i] : NULL);
		if (r || flag->value)
			return r;
	}
	return 0;
}

static int take_words(struct cli *c, char **words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int r = 0;

		if (strcmp(words[i], "--") == 0) {
			for (i++; i < n; i++)
				c->args[c->args_n++] = words[i];
			return 0;
		}
		if (strncmp(words[i], "--", 2) == 0)
			r = take_long(c, words, n, &i);
		else if (words[i][0] == '-' && words[i][1])
			r = take_short(c, words, n, &i);
		else
			c->args[c->args_n++] = words[i];
		if (r)
			return r;
	}
	return 0;
}

/* ---- values ---- */

const char *cli_flag(const struct cli *c, const char *name)
{
	const char *value = NULL;

	for (size_t i = 0; i < c->given_n; i++)
		if (strcmp(c->given[i].flag->name, name) == 0)
			value = c->given[i].value;
	return value;
}

bool cli_has(const struct cli *c, const char *name)
{
	return cli_flag(c, name) != NULL;
}

const char *cli_flag_nth(const struct cli *c, const char *name, size_t n)
{
	for (size_t i = 0; i < c->given_n; i++)
		if (strcmp(c->given[i].flag->name, name) == 0 && n-- == 0)
			return c->given[i].value;
	return NULL;
}

/* ---- checks ---- */

static int set_format(struct cli *c)
{
	static const char *const names[] = {
		[FORMAT_TABLE] = "table",
		[FORMAT_JSON] = "json",
		[FORMAT_YAML] = "yaml",
		[FORMAT_RAW] = "raw",
	};
	struct view all = view_of(c->command->outputs ? c->command->outputs : "raw"), word;
	const char *wanted = cli_flag(c, "output");
	bool first = true;

	for (struct view rest = all; view_split(&rest, ' ', &word); first = false) {
		if (wanted ? !view_is(word, wanted) : !first)
			continue;
		for (size_t i = 0; i < ARRAY_LEN(names); i++)
			if (view_is(word, names[i]))
				c->format = (enum cli_format)i;
		return 0;
	}
	return cli_usage(c, "'%s' is no output of this command: it has " VIEW_FMT, wanted,
			 VIEW_ARG(all));
}

static int check_needed(struct cli *c)
{
	size_t min, max;

	for (const struct flag *it = c->command->flags; it && it->name; it++)
		if (it->times == FLAG_NEEDED && !cli_has(c, it->name))
			return cli_usage(c, "option '--%s' is missing", it->name);
	command_arity(c->command, &min, &max);
	if (c->args_n < min)
		return cli_usage(c, "it needs: %s", c->command->arguments);
	if (c->args_n > max)
		return cli_usage(c, "'%s' is one argument too many", c->args[max]);
	return 0;
}

static int unknown(struct cli *c, const char *seen, const char *word)
{
	if (!word)
		return help_show(c, seen) ? CLI_USAGE : CLI_USAGE;
	fprintf(stderr, "osb: there is no command '%s%s%s'\nTry 'osb %s%s--help'.\n", seen,
		seen[0] ? " " : "", word, seen, seen[0] ? " " : "");
	return CLI_USAGE;
}

/* Global options may stand before the command: how many words are they? */
static size_t leading(char **words, size_t n)
{
	size_t i = 0;

	while (i < n && words[i][0] == '-' && strcmp(words[i], "--") != 0) {
		const struct flag *flag;

		if (words[i][1] == '-') {
			struct view text = view_skip(view_of(words[i]), 2);
			size_t equals = view_find(text, '=');

			flag = find_flag(NULL, view_first(text, equals), 0);
			i += flag && flag->value && equals == text.len ? 2 : 1;
		} else {
			flag = find_flag(NULL, VIEW_NONE, words[i][1]);
			i += flag && flag->value && !words[i][2] ? 2 : 1;
		}
	}
	return i < n ? i : n;
}

int cli_parse(struct cli *c, int argc, char **argv)
{
	char **words = argv + 1, seen[128] = "";
	size_t n = (size_t)argc - 1, before = leading(words, n), used = 0;
	int r;

	c->args = mem_new_array(char *, n + 1);
	r = take_words(c, words, before);
	if (r)
		return r;
	c->command = longest(words + before, n - before, seen, sizeof(seen), &used);
	if (!c->command && (cli_has(c, "help") || before + used == n || cli_has(c, "version")))
		return 0;
	if (!c->command) {
		char *next = words[before + used];

		if (strcmp(next, "--help") == 0 || strcmp(next, "-h") == 0)
			return help_show(c, seen) == 0 ? -1 : CLI_FAILED;
		return unknown(c, seen, next);
	}
	r = take_words(c, words + before + used, n - before - used);
	if (r == 0 && !cli_has(c, "help"))
		r = set_format(c);
	if (r == 0 && !cli_has(c, "help"))
		r = check_needed(c);
	return r;
}
