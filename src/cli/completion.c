/*
 * cli/completion.c - words that shells offer, out of the table.
 */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"

/* The next words behind `prefix`, each once. */
static void put_next(const char *prefix)
{
	char last[64] = "";

	for (const struct command *it = cli_commands; it->path; it++) {
		const char *rest = path_behind(it->path, prefix);
		char word[64];

		if (!rest)
			continue;
		snprintf(word, sizeof(word), "%.*s", (int)strcspn(rest, " "), rest);
		if (strcmp(word, last) != 0)
			printf(" %s", word);
		memcpy(last, word, sizeof(last));
	}
}

static void put_flags(const struct command *command)
{
	for (const struct flag *f = command->flags; f && f->name; f++)
		printf(" --%s", f->name);
	if (command->outputs && strchr(command->outputs, ' '))
		fputs(" --output", stdout);
	fputs(" --help", stdout);
}

/* Each path of the tree and what may stand behind it. */
static void put_cases(const char *form)
{
	for (const struct group *g = cli_groups; g->name; g++) {
		printf(form, g->name);
		put_next(g->name);
		puts(" --help' ;;");
	}
	for (const struct command *it = cli_commands; it->path; it++) {
		printf(form, it->path);
		put_flags(it);
		puts("' ;;");
	}
}

static void put_bash(void)
{
	puts("_osb() {\n"
	     "  local cur=${COMP_WORDS[COMP_CWORD]} path= words= i\n"
	     "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
	     "    case ${COMP_WORDS[i]} in\n"
	     "    -*) ;;\n"
	     "    *) _osb_words \"${path:+$path }${COMP_WORDS[i]}\" >/dev/null &&\n"
	     "         path=\"${path:+$path }${COMP_WORDS[i]}\" ;;\n"
	     "    esac\n"
	     "  done\n"
	     "  words=$(_osb_words \"$path\")\n"
	     "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
	     "  [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- \"$cur\"))\n"
	     "}\n"
	     "_osb_words() {\n"
	     "  case $1 in");
	fputs("  '') echo '", stdout);
	put_next("");
	puts(" --help --version' ;;");
	put_cases("  '%s') echo '");
	puts("  *) return 1 ;;\n  esac\n}\ncomplete -F _osb osb");
}

static void put_fish(void)
{
	fputs("complete -c osb -n __fish_use_subcommand -f -a '", stdout);
	put_next("");
	puts("'");
	for (const struct group *g = cli_groups; g->name; g++) {
		if (strchr(g->name, ' '))
			continue;
		printf("complete -c osb -n '__fish_seen_subcommand_from %s' -f -a '", g->name);
		put_next(g->name);
		puts("'");
	}
}

int completion(struct cli *c)
{
	const char *shell_name = c->args[0];

	if (strcmp(shell_name, "bash") == 0) {
		put_bash();
	} else if (strcmp(shell_name, "zsh") == 0) {
		puts("autoload -U +X bashcompinit && bashcompinit");
		put_bash();
	} else if (strcmp(shell_name, "fish") == 0) {
		put_fish();
	} else {
		return cli_usage(c, "'%s' is none of bash, zsh, fish", shell_name);
	}
	return fflush(stdout) ? CLI_FAILED : 0;
}

int man_pages(struct cli *c)
{
	return help_man(c->args[0]);
}
