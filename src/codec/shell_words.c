/*
 * codec/shell_words.c - one pass, one state: which quote we are in.
 */
#include "codec/shell_words.h"

#include <errno.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/strv.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* In double quotes a backslash escapes only these. */
static bool escapable(char c)
{
	return c == '"' || c == '\\' || c == '$' || c == '`';
}

/* Reads one word off the front; 1 = a word, 0 = the end, -EINVAL. */
static int next_word(struct view *in, struct buf *word)
{
	char quote = '\0';
	bool any = false;
	size_t i = 0;

	while (i < in->len && is_blank(in->p[i]))
		i++;
	for (; i < in->len && (quote || !is_blank(in->p[i])); i++) {
		char c = in->p[i];

		any = true;
		if (quote ? c == quote : c == '\'' || c == '"') {
			quote = quote ? '\0' : c;
			continue;
		}
		if (c == '\\' && quote != '\'') {
			if (++i == in->len)
				return -EINVAL;
			if (quote && !escapable(in->p[i]) && buf_append_char(word, '\\') < 0)
				return -EINVAL;
			c = in->p[i];
		}
		if (buf_append_char(word, c) < 0)
			return -EINVAL;
	}
	*in = view_skip(*in, i);
	if (quote)
		return -EINVAL;
	return any;
}

int shell_words_split(struct view text, struct strv *ret)
{
	for (;;) {
		osb_cleanup(buf_done) struct buf word = BUF_INIT(text.len);
		int r = next_word(&text, &word);

		if (r <= 0)
			return r;
		strv_add_view(ret, buf_view(&word));
	}
}
