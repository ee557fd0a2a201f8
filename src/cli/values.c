/*
 * cli/values.c - durations, pairs, modes, files: what options mean.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/view.h"
#include "cli/cli.h"

#define FILE_MAX (64u << 20)

bool cli_duration(const char *text, int64_t *ret_s)
{
	static const char units[] = "hms";
	static const int64_t seconds[] = {3600, 60, 1};
	int64_t total = 0, n = 0;
	int last = -1, digits = 0;

	if (num_parse_i64(view_of(text), ret_s))
		return *ret_s > 0 && *ret_s <= INT32_MAX;
	for (; *text; text++) {
		const char *unit = strchr(units, *text);

		if (*text >= '0' && *text <= '9' && digits++ < 9) {
			n = n * 10 + (*text - '0');
			continue;
		}
		if (!unit || !digits || unit - units <= last)
			return false;
		last = (int)(unit - units);
		total += n * seconds[last];
		n = digits = 0;
	}
	*ret_s = total;
	return digits == 0 && total > 0 && total <= INT32_MAX;
}

bool cli_pair(const char *text, char **ret_name, const char **ret_value)
{
	const char *equals = strchr(text, '=');

	if (!equals || equals == text)
		return false;
	*ret_name = mem_strndup(text, (size_t)(equals - text));
	*ret_value = equals + 1;
	return true;
}

osb_pair *cli_pairs(struct cli *c, const char *name, size_t *ret_n)
{
	osb_pair *all = mem_new_array(osb_pair, c->given_n + 1);
	const char *text;

	for (*ret_n = 0; (text = cli_flag_nth(c, name, *ret_n)); ++*ret_n) {
		char *key = NULL;

		if (!cli_pair(text, &key, &all[*ret_n].value)) {
			cli_usage(c, "--%s: '%s' is not written NAME=VALUE", name, text);
			cli_pairs_free(all, *ret_n);
			return NULL;
		}
		all[*ret_n].name = key;
	}
	return all;
}

void cli_pairs_free(osb_pair *v, size_t n)
{
	for (size_t i = 0; v && i < n; i++)
		free((char *)v[i].name);
	free(v);
}

bool cli_mode(const char *text, unsigned *ret)
{
	uint32_t mode;

	if (!num_parse_octal(view_of(text), &mode) || mode > 07777)
		return false;
	*ret = mode;
	return true;
}

char *cli_read_file(struct cli *c, const char *path, size_t *ret_n)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(FILE_MAX);
	bool standard = strcmp(path, "-") == 0;
	osb_cleanup(fd_closep) int own = standard ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	int fd = standard ? STDIN_FILENO : own;
	ssize_t n;

	if (fd < 0) {
		cli_error(c, "%s: %s", path, strerror(errno));
		return NULL;
	}
	do {
		char *room = buf_reserve(&text, 65536);

		n = room ? read(fd, room, 65536) : -1;
		if (n < 0) {
			cli_error(c, "%s: %s", path,
				  room ? strerror(errno) : "larger than 64 MiB: upload it");
			return NULL;
		}
		buf_commit(&text, (size_t)n);
	} while (n > 0);
	if (ret_n)
		*ret_n = text.len;
	return buf_take_str(&text);
}

static bool is_plain(const char *word)
{
	static const char fine[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				   "@%+=:,./-_";

	return word[0] && strspn(word, fine) == strlen(word);
}

char *cli_quote_words(char *const *words, size_t n)
{
	struct buf text = BUF_INIT(FILE_MAX);
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		r = buf_append_str(&text, i ? " " : "");
		if (is_plain(words[i])) {
			r = r ? r : buf_append_str(&text, words[i]);
			continue;
		}
		r = r ? r : buf_append_char(&text, '\'');
		for (const char *p = words[i]; *p && r == 0; p++)
			r = *p == '\'' ? buf_append_str(&text, "'\\''")
				       : buf_append_char(&text, *p);
		r = r ? r : buf_append_char(&text, '\'');
	}
	if (r < 0)
		buf_clear(&text);
	return buf_take_str(&text);
}
