/*
 * cli/show_yaml.c - JSON values as YAML 1.1 in block style.
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/num.h"
#include "base/view.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "codec/json.h"
#include "codec/json_copy.h"
#include "codec/json_writer.h"

/* Would another reader take it for something else than this string? */
static bool needs_quotes(struct view text)
{
	static const char *const words[] = {"true", "false", "null", "yes",   "no", "on", "off",
					    "~",    ".nan",  ".inf", "-.inf", "y",  "n"};
	static const char first[] = "-?:,[]{}#&*!|>'\"%@` =<";

	if (!text.len || strchr(first, text.p[0]) || text.p[text.len - 1] == ' ' ||
	    text.p[text.len - 1] == ':')
		return true;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (view_iis(text, words[i]))
			return true;
	if ((text.p[0] >= '0' && text.p[0] <= '9') || text.p[0] == '+' || text.p[0] == '.')
		return true; /* numbers, dates and what looks like them */
	return view_find_view(text, VIEW(": ")) < text.len ||
	       view_find_view(text, VIEW(" #")) < text.len;
}

static bool is_printable(struct view text)
{
	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)text.p[i] < ' ' || text.p[i] == 0x7f)
			return false;
	return true;
}

static void put_string(struct view text)
{
	osb_cleanup(buf_done) struct buf escaped = BUF_INIT(CLI_JSON_MAX);

	if (is_printable(text) && !needs_quotes(text)) {
		printf(VIEW_FMT "\n", VIEW_ARG(text));
	} else if (is_printable(text)) {
		putchar('\'');
		for (size_t i = 0; i < text.len; i++) {
			if (text.p[i] == '\'')
				putchar('\'');
			putchar(text.p[i]);
		}
		puts("'");
	} else if (json_escape(&escaped, text) == 0) {
		printf("\"%s\"\n", buf_str(&escaped)); /* what JSON escapes, YAML reads */
	}
}

static void put_scalar(const struct json *v)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(CLI_JSON_MAX);
	struct json_writer w;
	struct view string;

	if (v && json_str(v, &string)) {
		put_string(string);
		return;
	}
	json_writer_init(&w, &text);
	json_write_json(&w, v);
	if (json_writer_end(&w) == 0)
		puts(buf_str(&text));
}

static void put(const struct json *v, unsigned depth, bool in_list);

static void indent(unsigned depth)
{
	for (unsigned i = 0; i < depth; i++)
		fputs("  ", stdout);
}

static bool is_block(const struct json *v)
{
	return v && (json_kind(v) == JSON_OBJECT || json_kind(v) == JSON_ARRAY) && json_len(v) > 0;
}

static void put_member(const struct json *value, unsigned depth)
{
	bool list = value && json_kind(value) == JSON_ARRAY;

	if (!is_block(value)) {
		putchar(' ');
		put_scalar(value);
		return;
	}
	putchar('\n');
	put(value, list ? depth : depth + 1, false);
}

/* `in_list`: the first line stands behind a "- " already. */
static void put(const struct json *v, unsigned depth, bool in_list)
{
	const struct json *value;
	struct view key;
	void *it = NULL;

	if (!is_block(v)) {
		put_scalar(v);
		return;
	}
	if (json_kind(v) == JSON_ARRAY) {
		for (size_t i = 0; i < json_len(v); i++) {
			if (!in_list || i)
				indent(depth);
			fputs("- ", stdout);
			put(json_at(v, i), depth + 1, true);
		}
		return;
	}
	while (json_next(v, &it, &key, &value)) {
		if (!in_list)
			indent(depth);
		in_list = false;
		printf(VIEW_FMT ":", VIEW_ARG(key));
		put_member(value, depth);
	}
}

int show_yaml(const struct json *v)
{
	put(v, 0, false);
	return fflush(stdout) ? CLI_FAILED : 0;
}
