/*
 * cli/show.c - results on standard output.
 */
#include "cli/show.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "codec/json.h"
#include "codec/json_indent.h"
#include "codec/json_writer.h"
#include "codec/rfc3339.h"

/* What nobody reads any more is no failure worth a word. */
static int write_out(struct view text)
{
	if (fwrite(text.p, 1, text.len, stdout) != text.len || fflush(stdout) != 0)
		return CLI_FAILED;
	return 0;
}

static int show_indented(struct view json)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(CLI_JSON_MAX);

	if (json_indent(json, &text) < 0 || buf_append_char(&text, '\n') < 0)
		return CLI_FAILED;
	return write_out(buf_view(&text));
}

int show_raw(struct cli *c, struct view text)
{
	(void)c;
	return write_out(text);
}

int show_json(struct cli *c, struct view json, const char *columns)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	struct err e = ERR_NONE;

	if (json_parse(json, 0, &v, &e) < 0)
		return cli_error(c, "the server's answer is no JSON: %s", e.msg);
	if (c->format == FORMAT_JSON)
		return show_indented(json);
	if (c->format == FORMAT_YAML)
		return show_yaml(v);
	return show_table(c, v, columns);
}

int show_done(struct cli *c, const char *fmt, ...)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(1u << 20), json = BUF_INIT(2u << 20);
	struct json_writer w;
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = buf_vprintf(&text, fmt, ap);
	va_end(ap);
	if (r < 0)
		return CLI_FAILED;
	if (c->format == FORMAT_TABLE || c->format == FORMAT_RAW) {
		if (c->quiet)
			return 0;
		return buf_append_char(&text, '\n') < 0 ? CLI_FAILED : write_out(buf_view(&text));
	}
	json_writer_init(&w, &json);
	json_write_object(&w);
	json_put_cstr(&w, "status", "ok");
	json_put_string(&w, "message", buf_view(&text));
	json_write_object_end(&w);
	return json_writer_end(&w) < 0 ? CLI_FAILED : show_json(c, buf_view(&json), NULL);
}

/* ---- members ---- */

void put_text(struct json_writer *w, const char *key, const char *text)
{
	if (text) {
		json_put_cstr(w, key, text);
		return;
	}
	json_write_key(w, key);
	json_write_null(w);
}

/* Microseconds, or nothing if there are none.  False: it is no time. */
static bool time_text(const char *rfc3339, char middle, const char *zone, char *ret, size_t size)
{
	char whole[RFC3339_MAX];
	int64_t ns;
	int micros;

	if (!rfc3339 || !rfc3339_parse(view_of(rfc3339), &ns))
		return false;
	micros = (int)(ns / 1000 % 1000000);
	rfc3339_format(ns - ns % 1000000000, whole);
	whole[10] = middle;
	whole[19] = '\0';
	if (micros)
		snprintf(ret, size, "%s.%06d%s", whole, micros, zone);
	else
		snprintf(ret, size, "%s%s", whole, zone);
	return true;
}

void put_time(struct json_writer *w, const char *key, const char *rfc3339)
{
	char text[RFC3339_MAX + 16];

	put_text(w, key, time_text(rfc3339, 'T', "Z", text, sizeof(text)) ? text : rfc3339);
}

void put_python_time(struct json_writer *w, const char *key, const char *rfc3339)
{
	char text[RFC3339_MAX + 16];

	put_text(w, key, time_text(rfc3339, ' ', "+00:00", text, sizeof(text)) ? text : rfc3339);
}

void put_pagination(struct json_writer *w, int page, int size, int items, int pages, bool more)
{
	json_write_key(w, "pagination");
	json_write_object(w);
	json_put_int(w, "page", page);
	json_put_int(w, "page_size", size);
	json_put_int(w, "total_items", items);
	json_put_int(w, "total_pages", pages);
	json_put_bool(w, "has_next_page", more);
	json_write_object_end(w);
}
