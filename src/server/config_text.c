/*
 * server/config_text.c - the schema as text: a reference for people, a file to begin with.
 */
#include <string.h>

#include "base/buf.h"
#include "server/config.h"
#include "server/config_schema.h"

#define COLUMNS 98

/* What a first server needs; the rest has defaults. */
static const char *const example_keys[] = {
	"server.host", "server.port", "server.api_key", "runtime.type", "native.state_dir",
};

/* An example listens where only its own machine can reach it. */
#define EXAMPLE_HOST "\"127.0.0.1\""

static bool in_example(const struct config_key *k)
{
	for (size_t i = 0; i < ARRAY_LEN(example_keys); i++)
		if (config_key_find(view_of(example_keys[i])) == k)
			return true;
	return false;
}

/* ---- the reference ---- */

/* Bars would end a table's cell. */
static int write_cell(struct buf *out, const char *text)
{
	int r = 0;

	for (; *text && r == 0; text++)
		r = *text == '|' ? buf_append_str(out, "\\|") : buf_append_char(out, *text);
	return r;
}

static int write_range(struct buf *out, const struct config_key *k)
{
	if (k->type != CONFIG_INT)
		return buf_append_str(out, config_type_name(k->type));
	if (k->max == INT32_MAX)
		return buf_printf(out, "number from %lld", (long long)k->min);
	return buf_printf(out, "number, %lld to %lld", (long long)k->min, (long long)k->max);
}

static int write_row(struct buf *out, const struct config_key *k)
{
	int r = buf_printf(out, "| `%s` | ",
			   k->type == CONFIG_ALIASES   ? "\"pattern\""
			   : k->type == CONFIG_MIRRORS ? "\"registry\""
						       : k->name);

	if (r == 0)
		r = write_range(out, k);
	if (r == 0)
		r = k->initial ? buf_printf(out, " | `%s` | ", k->initial)
			       : buf_append_str(out, " | not set | ");
	if (r == 0)
		r = write_cell(out, k->meaning);
	return r == 0 ? buf_append_str(out, " |\n") : r;
}

int config_write_reference(struct buf *out)
{
	const char *section = "";
	int r = 0;

	for (const struct config_key *k = config_keys; r == 0 && k->section; k++) {
		if (strcmp(section, k->section) != 0) {
			section = k->section;
			r = buf_printf(out,
				       "### [%s]\n\n%s\n\n| key | type | default | meaning |\n"
				       "|---|---|---|---|\n",
				       section, config_section_meaning(section));
		}
		if (r == 0)
			r = write_row(out, k);
		if (r == 0 && (!k[1].section || strcmp(k[1].section, section) != 0))
			r = buf_append_str(out, "\n");
	}
	if (r == 0)
		r = buf_append_str(out,
				   "### Known, without effect here\n\n| key | why |\n|---|---|\n");
	for (const struct config_idle *i = config_idle; r == 0 && i->name; i++)
		r = buf_printf(out, "| `%s` | %s |\n", i->name, i->why);
	return r;
}

/* ---- a file to begin with ---- */

/* The meaning as comment lines of at most COLUMNS columns, without the marks of Markdown. */
static int write_comment(struct buf *out, const char *text)
{
	size_t column = 0;
	struct view rest = view_of(text), word;
	int r = 0;

	while (r == 0 && view_split(&rest, ' ', &word)) {
		if (column == 0 || column + 1 + word.len > COLUMNS) {
			r = buf_append_str(out, column ? "\n#" : "#");
			column = 1;
		}
		if (r == 0)
			r = buf_append_char(out, ' ');
		for (size_t i = 0; r == 0 && i < word.len; i++)
			if (word.p[i] != '`')
				r = buf_append_char(out, word.p[i]);
		column += 1 + word.len;
	}
	return r == 0 ? buf_append_char(out, '\n') : r;
}

static int write_key(struct buf *out, const struct config_key *k, bool example, const char *api_key)
{
	int r = write_comment(out, k->meaning);

	if (r < 0)
		return r;
	if (strcmp(k->name, "api_key") == 0)
		return buf_printf(out, "api_key = \"%s\"\n", api_key);
	if (k->type == CONFIG_MIRRORS)
		return buf_append_str(out, "# \"docker.io\" = [\"https://mirror.local\"]\n");
	if (k->type == CONFIG_ALIASES) /* the default without its braces */
		return buf_printf(out, "# %.*s\n", (int)strlen(k->initial) - 4, k->initial + 2);
	if (example && strcmp(k->name, "host") == 0)
		return buf_append_str(out, "host = " EXAMPLE_HOST "\n");
	return buf_printf(out, "%s%s = %s\n", example || in_example(k) ? "" : "# ", k->name,
			  k->initial		   ? k->initial
			  : k->type == CONFIG_INT  ? "3600"
			  : k->type == CONFIG_KEYS ? "[]"
						   : "\"\"");
}

int config_write_file(struct buf *out, bool example, const char *api_key)
{
	const char *section = "";
	int r = buf_append_str(out, "# Configuration of opensandbox-server (TOML).\n");

	if (r == 0 && !example)
		r = buf_append_str(out, "# What is commented out shows the default.\n");
	for (const struct config_key *k = config_keys; r == 0 && k->section; k++) {
		if (example && !in_example(k))
			continue;
		if (strcmp(section, k->section) != 0) {
			section = k->section;
			r = buf_printf(out, "\n%s[%s]\n", config_is_section(k->type) ? "# " : "",
				       section);
		}
		if (r == 0)
			r = write_key(out, k, example, api_key);
	}
	return r;
}
