/*
 * cli/help.c - --help and man pages, out of the table.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/view.h"
#include "cli/cli.h"

#define INDENT 34
#define WIDTH  100

/* Words in lines of at most WIDTH columns, all but the first indented. */
static void put_wrapped(const char *text, int at, int indent)
{
	struct view rest = view_of(text), word;

	while (view_split(&rest, ' ', &word)) {
		if (at + (int)word.len + 1 > WIDTH && at > indent) {
			printf("\n%*s", indent, "");
			at = indent;
		}
		printf("%s" VIEW_FMT, at > indent ? " " : "", VIEW_ARG(word));
		at += (int)word.len + (at > indent ? 1 : 0);
	}
	putchar('\n');
}

static void put_flag(const struct flag *f)
{
	char left[128];
	int n = snprintf(left, sizeof(left), "  %c%c%s--%s%s%s", f->letter ? '-' : ' ',
			 f->letter ? f->letter : ' ', f->letter ? ", " : "  ", f->name,
			 f->value ? " " : "", f->value ? f->value : "");

	if (n >= INDENT - 1)
		printf("%s\n%*s", left, INDENT, "");
	else
		printf("%-*s", INDENT, left);
	put_wrapped(f->help, INDENT, INDENT);
}

static void put_flags(const char *title, const struct flag *list)
{
	if (!list || !list->name)
		return;
	printf("\n%s\n", title);
	for (; list->name; list++)
		put_flag(list);
}

static void put_output(const struct command *command)
{
	char help[160];

	if (!command->outputs || !strchr(command->outputs, ' '))
		return;
	snprintf(help, sizeof(help), "One of: %s. The first is the default.", command->outputs);
	put_flag(&(struct flag){'o', "output", "FORMAT", FLAG_ONCE, help});
}

static void show_command(const struct command *command)
{
	printf("Usage: osb %s [OPTIONS] %s\n\n", command->path,
	       command->arguments ? command->arguments : "");
	put_wrapped(command->summary, 0, 0);
	if (command->more) {
		putchar('\n');
		put_wrapped(command->more, 0, 0);
	}
	put_flags("Options:", command->flags);
	if (command->outputs && strchr(command->outputs, ' ') &&
	    (!command->flags || !command->flags->name))
		puts("\nOptions:");
	put_output(command);
	puts("\nOptions of osb itself may stand anywhere: see 'osb --help'.");
}

/* Commands whose path begins with `prefix`, one level below it. */
static void list_below(const char *prefix)
{
	char last[64] = "";

	for (const struct command *it = cli_commands; it->path; it++) {
		const char *rest = path_behind(it->path, prefix);
		size_t len = rest ? strcspn(rest, " ") : 0;
		char word[64];

		if (!rest)
			continue;
		snprintf(word, sizeof(word), "%.*s", (int)len, rest);
		if (strcmp(word, last) == 0)
			continue;
		memcpy(last, word, sizeof(last));
		if (!rest[len]) {
			printf("  %-20s", word);
			put_wrapped(it->summary, 22, 22);
			continue;
		}
		for (const struct group *g = cli_groups; g->name; g++) {
			char full[128];

			snprintf(full, sizeof(full), "%s%s%s", prefix, prefix[0] ? " " : "", word);
			if (strcmp(g->name, full) == 0) {
				printf("  %-20s", word);
				put_wrapped(g->summary, 22, 22);
			}
		}
	}
}

static void show_group(const char *name)
{
	printf("Usage: osb %s%s[OPTIONS] COMMAND ...\n", name, name[0] ? " " : "");
	for (const struct group *g = cli_groups; g->name; g++)
		if (strcmp(g->name, name) == 0)
			printf("\n%s\n", g->summary);
	if (!name[0])
		puts("\nSandboxes for untrusted code, from the command line.");
	puts("\nCommands:");
	list_below(name);
	if (name[0]) {
		printf("\n'osb %s COMMAND --help' says more.\n", name);
		return;
	}
	put_flags("Options:", cli_globals);
	puts("\nExit codes: 0 done, 1 failed, 2 called wrongly, 130 interrupted; commands that run "
	     "a "
	     "program in a\nsandbox end with its exit code.");
}

int help_show(const struct cli *c, const char *path)
{
	const struct command *command = command_find(path);

	(void)c;
	if (command)
		show_command(command);
	else
		show_group(path);
	return fflush(stdout) ? CLI_FAILED : 0;
}

/* ---- man pages ---- */

/* Text for troff: backslashes, and dots that would be requests. */
static void put_roff(FILE *f, const char *text)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", f);
	for (; *text; text++) {
		if (*text == '\\')
			fputs("\\e", f);
		else if (*text == '-')
			fputs("\\-", f);
		else
			fputc(*text, f);
	}
	fputc('\n', f);
}

static void man_flags(FILE *f, const struct flag *list)
{
	for (; list && list->name; list++) {
		fputs(".TP\n", f);
		if (list->letter)
			fprintf(f, "\\fB\\-%c\\fR, ", list->letter);
		fprintf(f, "\\fB\\-\\-%s\\fR%s%s\n", list->name, list->value ? " " : "",
			list->value ? list->value : "");
		put_roff(f, list->help);
	}
}

static void man_command(FILE *f, const struct command *command)
{
	fprintf(f, ".SS osb %s %s\n", command->path, command->arguments ? command->arguments : "");
	put_roff(f, command->summary);
	if (command->more) {
		fputs(".PP\n", f);
		put_roff(f, command->more);
	}
	man_flags(f, command->flags);
	if (command->outputs && strchr(command->outputs, ' '))
		fprintf(f, ".TP\n\\fB\\-o\\fR, \\fB\\-\\-output\\fR FORMAT\nOne of: %s.\n",
			command->outputs);
}

/* Is it the group's own, or (for "") none's? */
static bool belongs(const struct command *command, const char *group)
{
	size_t n = strlen(group);

	if (!n)
		return !strchr(command->path, ' ');
	return strncmp(command->path, group, n) == 0 && command->path[n] == ' ';
}

static int man_page(const char *directory, const char *group, const char *summary)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/osb%s%s.1", directory, group[0] ? "-" : "", group);
	f = fopen(path, "we");
	if (!f) {
		fprintf(stderr, "osb: %s: %s\n", path, strerror(errno));
		return CLI_FAILED;
	}
	fprintf(f, ".TH OSB%s%s 1 \"\" \"osb %s\" \"OpenSandbox\"\n.SH NAME\nosb%s%s \\- ",
		group[0] ? "-" : "", group, OSB_VERSION, group[0] ? "\\-" : "", group);
	put_roff(f, summary);
	fprintf(f, ".SH SYNOPSIS\n\\fBosb%s%s\\fR [OPTIONS] COMMAND ...\n.SH COMMANDS\n",
		group[0] ? " " : "", group);
	for (const struct command *it = cli_commands; it->path; it++)
		if (belongs(it, group))
			man_command(f, it);
	if (!group[0]) {
		for (const struct group *g = cli_groups; g->name; g++)
			if (!strchr(g->name, ' '))
				fprintf(f, ".TP\n\\fBosb %s\\fR\n%s  See \\fBosb\\-%s\\fR(1).\n",
					g->name, g->summary, g->name);
		fputs(".SH OPTIONS\n", f);
		man_flags(f, cli_globals);
		fputs(".SH EXIT STATUS\n0 done, 1 failed, 2 called wrongly, 130 interrupted; "
		      "commands that run a program in a sandbox end with its exit code.\n",
		      f);
	}
	return fclose(f) ? CLI_FAILED : 0;
}

int help_man(const char *directory)
{
	int r = man_page(directory, "", "sandboxes for untrusted code, from the command line");

	for (const struct group *g = cli_groups; g->name && r == 0; g++)
		if (!strchr(g->name, ' '))
			r = man_page(directory, g->name, g->summary);
	return r;
}
