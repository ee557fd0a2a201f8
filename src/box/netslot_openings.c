/*
 * box/netslot_openings.c - accept rules in "ip filter", whether nft keeps it or the old iptables.
 *
 * The rules use nothing but interface names: what iptables over nft cannot show, it refuses to work
 * beside.
 */
#include "box/netslot_openings.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/macro.h"
#include "base/num.h"
#include "base/view.h"
#include "sys/tool.h"

#define CHAIN_MAX_BYTES 65536

/* The first that exists: Docker leaves DOCKER-USER to others and never clears it. */
static const char *const chains[] = {"DOCKER-USER", "FORWARD"};

static const char *const directions[] = {"iifname", "oifname"};
static const char *const old_directions[] = {"-i", "-o"};

static bool nft(const char *command, char *ret_text, size_t size)
{
	const char *const argv[] = {"nft", "-a", command, NULL};
	struct err e = ERR_NONE;

	return tool_run(argv, VIEW_NONE, ret_text, size, &e) == 0;
}

static const char *find_chain(char *ret_text, size_t size)
{
	for (size_t i = 0; i < ARRAY_LEN(chains); i++) {
		char command[64];

		snprintf(command, sizeof(command), "list chain ip filter %s", chains[i]);
		if (nft(command, ret_text, size))
			return chains[i];
	}
	return NULL;
}

static void make_in_nft(const char *prefix)
{
	char text[CHAIN_MAX_BYTES], command[160];
	const char *chain = find_chain(text, sizeof(text));

	if (!chain || strstr(text, prefix))
		return;
	for (size_t i = 0; i < ARRAY_LEN(directions); i++) {
		snprintf(command, sizeof(command),
			 "insert rule ip filter %s %s \"%s*\" counter accept", chain, directions[i],
			 prefix);
		(void)nft(command, text, sizeof(text));
	}
}

/* Lines end in "# handle 12". */
static void close_in_nft(const char *prefix)
{
	char text[CHAIN_MAX_BYTES], command[96], ignored[64];
	const char *chain = find_chain(text, sizeof(text));
	struct view rest = view_of(text), line;

	if (!chain)
		return;
	while (view_split(&rest, '\n', &line)) {
		size_t at = view_find_view(line, VIEW("# handle "));
		uint32_t handle;

		if (view_find_view(line, view_of(prefix)) == line.len ||
		    !num_parse_u32(view_trim(view_skip(line, at + 9)), &handle))
			continue;
		snprintf(command, sizeof(command), "delete rule ip filter %s handle %u", chain,
			 handle);
		(void)nft(command, ignored, sizeof(ignored));
	}
}

/* Asking the old tool would bring its tables to life where nobody uses them. */
static bool old_tables_in_use(void)
{
	osb_cleanup(fd_closep) int fd = open("/proc/net/ip_tables_names", O_RDONLY | O_CLOEXEC);
	char text[256] = "";

	return fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && strstr(text, "filter");
}

static bool old(const char *action, const char *chain, const char *direction, const char *name)
{
	const char *const argv[] = {"iptables-legacy", "-w", "5",  action,   chain,
				    direction,	       name, "-j", "ACCEPT", NULL};
	struct err e = ERR_NONE;
	char ignored[64];

	return tool_run(argv, VIEW_NONE, ignored, sizeof(ignored), &e) == 0;
}

static void change_old(const char *prefix, bool open_up)
{
	char name[32];

	if (!old_tables_in_use())
		return;
	snprintf(name, sizeof(name), "%s+", prefix);
	for (size_t d = 0; d < ARRAY_LEN(old_directions); d++) {
		for (size_t i = 0; i < ARRAY_LEN(chains); i++) {
			const char *direction = old_directions[d];
			bool there = old("-C", chains[i], direction, name);

			if (open_up && (there || old("-I", chains[i], direction, name)))
				break;
			if (!open_up && there)
				(void)old("-D", chains[i], direction, name);
		}
	}
}

void netslot_openings_make(const char *prefix)
{
	make_in_nft(prefix);
	change_old(prefix, true);
}

void netslot_openings_close(const char *prefix)
{
	close_in_nft(prefix);
	change_old(prefix, false);
}
