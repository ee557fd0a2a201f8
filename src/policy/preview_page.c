/*
 * policy/preview_page.c - what a client is told when a preview cannot be shown.
 */
#include <errno.h>
#include <stdio.h>

#include "base/buf.h"
#include "codec/http1.h"
#include "codec/json_writer.h"
#include "policy/preview.h"

#define BACKEND "BACKEND_CONNECTION_FAILED"

/* "%s" twice: the sandbox, the port. */
static const struct {
	int status;
	const char *code;
	bool may_retry;
	bool has_port;
	const char *sentence;
} problems[PREVIEW_PROBLEMS_] = {
	[PREVIEW_BAD_ROUTE] = {400, "INVALID_ROUTE", false, false,
			       "the request names no port of a sandbox"},
	[PREVIEW_UNAUTHORIZED] = {401, "MISSING_OR_INVALID_SECURE_ACCESS", false, false,
				  "sandbox '%s' is protected"},
	[PREVIEW_UNKNOWN] = {404, "DOCKER::SANDBOX_NOT_FOUND", false, false,
			     "there is no sandbox '%s'"},
	[PREVIEW_EXPIRED] = {404, "DOCKER::SANDBOX_NOT_FOUND", false, false,
			     "sandbox '%s' has expired and was deleted"},
	[PREVIEW_ENDED] = {502, BACKEND, false, false, "sandbox '%s' has ended"},
	[PREVIEW_REFUSED] = {502, BACKEND, false, true,
			     "nothing listens on port %s of sandbox '%s'"},
	[PREVIEW_BROKE] = {502, BACKEND, false, true,
			   "the program on port %s of sandbox '%s' gave no proper answer"},
	[PREVIEW_NO_VERIFIER] = {503, "SECURE_ACCESS_NOT_CONFIGURED", false, false,
				 "sandbox '%s' is protected"},
	[PREVIEW_STARTING] = {503, "SANDBOX::PENDING", true, false,
			      "sandbox '%s' does not run yet"},
	[PREVIEW_PAUSED] = {503, "SANDBOX::PAUSED", false, false,
			    "sandbox '%s' is paused: resume it to go on"},
	[PREVIEW_NOT_RESUMED] = {503, "SANDBOX::PAUSED", true, false,
				 "sandbox '%s' is paused and could not be resumed in time"},
	[PREVIEW_UNREACHABLE] = {502, BACKEND, false, true,
				 "port %s of sandbox '%s' cannot be reached"},
	[PREVIEW_TIMEOUT] = {504, "BACKEND_TIMEOUT", false, true,
			     "the program on port %s of sandbox '%s' did not answer in time"},
};

int preview_status(enum preview_problem problem)
{
	return problems[problem].status;
}

const char *preview_code(enum preview_problem problem)
{
	return problems[problem].code;
}

bool preview_may_retry(enum preview_problem problem)
{
	return problems[problem].may_retry;
}

/* The templates above are filled in by hand: ids come from outside, formats do not. */
static void fill_in(const char *form, const char *const *words, char *ret, size_t size)
{
	size_t n = 0;

	while (*form && n + 1 < size) {
		if (form[0] != '%' || form[1] != 's') {
			ret[n++] = *form++;
			continue;
		}
		for (const char *word = *words++; *word && n + 1 < size; word++)
			ret[n++] = *word;
		form += 2;
	}
	ret[n] = '\0';
}

void preview_sentence(enum preview_problem problem, struct view id, uint16_t port,
		      const char *detail, char ret[PREVIEW_SENTENCE_MAX])
{
	char name[65], number[8];
	const char *words[2] = {name, name};
	size_t n;

	snprintf(name, sizeof(name), VIEW_FMT, VIEW_ARG(view_first(id, sizeof(name) - 1)));
	snprintf(number, sizeof(number), "%u", port);
	if (problems[problem].has_port)
		words[0] = number;
	fill_in(problems[problem].sentence, words, ret, PREVIEW_SENTENCE_MAX);
	n = strlen(ret);
	if (detail && *detail)
		snprintf(ret + n, PREVIEW_SENTENCE_MAX - n, ": %s", detail);
}

enum preview_problem preview_problem_of(int code)
{
	switch (-code) {
	case ECONNREFUSED:
		return PREVIEW_REFUSED;
	case ETIMEDOUT:
		return PREVIEW_TIMEOUT;
	case ECONNRESET:
	case EPROTO:
	case EPIPE:
	case E2BIG:
		return PREVIEW_BROKE;
	default:
		return PREVIEW_UNREACHABLE;
	}
}

enum preview_format preview_format(struct view accept, enum preview_format otherwise)
{
	static const struct {
		const char *type;
		enum preview_format format;
	} known[] = {
		{"text/html", PREVIEW_HTML},
		{"application/json", PREVIEW_JSON},
		{"text/plain", PREVIEW_TEXT},
	};
	struct view item;

	/* In the order of the client; weights are for those who need an exact answer. */
	while (view_split(&accept, ',', &item)) {
		item = view_trim(view_first(item, view_find(item, ';')));
		for (size_t i = 0; i < ARRAY_LEN(known); i++)
			if (view_iis(item, known[i].type))
				return known[i].format;
	}
	return otherwise;
}

static int append_escaped(struct buf *out, const char *text)
{
	int r = 0;

	for (; *text && r == 0; text++) {
		switch (*text) {
		case '&':
			r = buf_append_str(out, "&amp;");
			break;
		case '<':
			r = buf_append_str(out, "&lt;");
			break;
		case '>':
			r = buf_append_str(out, "&gt;");
			break;
		case '"':
			r = buf_append_str(out, "&quot;");
			break;
		default:
			r = buf_append_char(out, *text);
		}
	}
	return r;
}

static int write_html(struct buf *out, int status, const char *sentence)
{
	int r = buf_printf(out,
			   "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
			   "<title>%d %s</title>\n<style>body{font:16px/1.5 sans-serif;"
			   "margin:15vh auto;max-width:40em;padding:0 1em}</style></head>\n"
			   "<body><h1>%s</h1>\n<p>OpenSandbox: ",
			   status, http1_reason(status), http1_reason(status));

	r = r ? r : append_escaped(out, sentence);
	return r ? r : buf_append_str(out, ".</p></body></html>\n");
}

static int write_json(struct buf *out, const char *code, const char *sentence)
{
	struct json_writer w;

	json_writer_init(&w, out);
	json_write_object(&w);
	json_put_cstr(&w, "code", code);
	json_put_cstr(&w, "message", sentence);
	json_write_object_end(&w);
	return json_writer_end(&w);
}

const char *preview_page(struct buf *out, enum preview_problem problem, enum preview_format format,
			 const char *sentence)
{
	switch (format) {
	case PREVIEW_HTML:
		(void)!write_html(out, problems[problem].status, sentence);
		return "text/html; charset=utf-8";
	case PREVIEW_JSON:
		(void)!write_json(out, problems[problem].code, sentence);
		return "application/json";
	default:
		(void)!buf_printf(out, "OpenSandbox Ingress: %s\n", sentence);
		return "text/plain; charset=utf-8";
	}
}
