/*
 * cli/show_table.c - tables: columns side by side for lists, a line for each member of an object.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "base/view.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "codec/json.h"
#include "codec/json_copy.h"
#include "codec/json_writer.h"

#define COLUMNS_MAX 16
#define CELL_MAX    (1u << 20)

/* ---- cells ---- */

/* One line, with nothing in it that a terminal obeys. */
static char *plain(struct view text)
{
	char *cell = mem_strndup(text.p, text.len);

	for (char *p = cell; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = ' ';
	return cell;
}

static char *cell_of(const struct json *v)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(CELL_MAX);
	struct json_writer w;
	struct view string;

	if (!v || json_kind(v) == JSON_NULL)
		return mem_strdup("-");
	if (json_str(v, &string))
		return plain(string);
	json_writer_init(&w, &text);
	json_write_json(&w, v);
	return json_writer_end(&w) < 0 ? mem_strdup("...") : plain(buf_view(&text));
}

/* "status.state" leads into objects. */
static const struct json *find(const struct json *v, struct view path)
{
	struct view word;

	while (v && view_split(&path, '.', &word)) {
		char key[64];

		snprintf(key, sizeof(key), VIEW_FMT, VIEW_ARG(word));
		v = json_get(v, key);
	}
	return v;
}

/* Characters, not bytes; wide ones are not told apart. */
static size_t width(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static void pad(const char *text, size_t to)
{
	fputs(text, stdout);
	for (size_t n = width(text); n < to; n++)
		putchar(' ');
}

/* ---- lists ---- */

struct column {
	struct view path;
	char title[64];
	size_t width;
};

static size_t read_columns(const char *text, struct column *ret)
{
	struct view rest = view_of(text), word;
	size_t n = 0;

	while (n < COLUMNS_MAX && view_split(&rest, ' ', &word)) {
		struct view title = word;
		size_t colon = view_find(word, ':');

		ret[n].path = view_first(word, colon);
		if (colon < word.len)
			title = view_skip(word, colon + 1);
		snprintf(ret[n].title, sizeof(ret[n].title), VIEW_FMT, VIEW_ARG(title));
		for (char *p = ret[n].title; *p; p++)
			*p = (char)(*p >= 'a' && *p <= 'z' ? *p - 32 : *p == '.' ? '_' : *p);
		ret[n].width = width(ret[n].title);
		n++;
	}
	return n;
}

static void print_row(char *const *cells, const struct column *columns, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (i + 1 == n)
			fputs(cells[i], stdout);
		else
			pad(cells[i], columns[i].width + 2);
	}
	putchar('\n');
}

static int show_list(struct cli *c, const struct json *items, const char *text)
{
	struct column columns[COLUMNS_MAX];
	size_t n = read_columns(text, columns), rows = json_len(items);
	char **cells = mem_new_array(char *, rows *n + 1);
	char *titles[COLUMNS_MAX];

	for (size_t i = 0; i < rows * n; i++) {
		cells[i] = cell_of(find(json_at(items, i / n), columns[i % n].path));
		columns[i % n].width = MAX(columns[i % n].width, width(cells[i]));
	}
	for (size_t i = 0; i < n; i++)
		titles[i] = columns[i].title;
	if (!c->quiet)
		print_row(titles, columns, n);
	for (size_t i = 0; i < rows; i++)
		print_row(cells + i * n, columns, n);
	for (size_t i = 0; i < rows * n; i++)
		free(cells[i]);
	free(cells);
	return fflush(stdout) ? CLI_FAILED : 0;
}

/* ---- one object ---- */

static int show_object(const struct json *v)
{
	const struct json *value;
	size_t widest = 0;
	struct view key;
	void *it = NULL;

	while (json_next(v, &it, &key, &value))
		widest = MAX(widest, key.len);
	it = NULL;
	while (json_next(v, &it, &key, &value)) {
		char *cell = cell_of(value);

		printf(VIEW_FMT ":%*s %s\n", VIEW_ARG(key), (int)(widest - key.len), "", cell);
		free(cell);
	}
	return fflush(stdout) ? CLI_FAILED : 0;
}

int show_table(struct cli *c, const struct json *v, const char *columns)
{
	const struct json *items = json_get(v, "items");

	if (columns && items)
		return show_list(c, items, columns);
	if (columns && json_kind(v) == JSON_ARRAY)
		return show_list(c, v, columns);
	return json_kind(v) == JSON_OBJECT ? show_object(v) : show_yaml(v);
}
