/*
 * image/registry_error.c - what a registry's refusal means, and its own words for it.
 */
#include <errno.h>

#include "base/err.h"
#include "codec/json.h"
#include "image/registry_int.h"

#define WORDS_MAX 120

/* {"errors":[{"code":"...","message":"..."}]}, or what token servers say instead. */
static bool find_message(const struct json *v, struct view *ret)
{
	static const char *const names[] = {"message", "details", "error_description", "error"};
	const struct json *first = json_at(json_get(v, "errors"), 0);

	if (json_str(json_get(first, "message"), ret) && ret->len > 0)
		return true;
	if (json_str(json_get(first, "code"), ret) && ret->len > 0)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (json_str(json_get(v, names[i]), ret) && ret->len > 0)
			return true;
	return false;
}

/* One line of printable ASCII, whatever they sent. */
static void clean(struct view from, char ret[WORDS_MAX + 1])
{
	size_t n = 0;

	for (size_t i = 0; i < from.len && n < WORDS_MAX; i++) {
		char c = from.p[i];

		if (c == '\n' || c == '\r') {
			if (n > 0)
				break;
			continue;
		}
		ret[n++] = c >= 0x20 && c < 0x7f ? c : '?';
	}
	ret[n] = '\0';
}

static void words_of(const struct transfer *t, char ret[WORDS_MAX + 1])
{
	osb_cleanup(json_freep) struct json *v = NULL;
	struct err ignored = ERR_NONE;
	struct view text = buf_view(&t->said), found;

	ret[0] = '\0';
	if (text.len == 0)
		return;
	if (json_parse(text, JSON_FIRST_VALUE, &v, &ignored) == 0) {
		if (find_message(v, &found))
			clean(found, ret);
	} else if (text.p[0] != '<') {
		clean(text, ret);
	}
}

static int code_of(int status)
{
	switch (status) {
	case 401:
	case 403:
	case 407:
		return -EACCES;
	case 404:
	case 410:
		return -ENOENT;
	case 413:
		return -EFBIG;
	default:
		return -EHOSTUNREACH;
	}
}

static const char *meaning_of(int status)
{
	switch (status) {
	case 401:
	case 403:
		return "access denied";
	case 404:
		return "not found";
	case 429:
		return "too many requests";
	default:
		return status >= 500 ? "server error" : "request refused";
	}
}

int registry_answer_error(const struct transfer *t, const char *host, struct err *e)
{
	char words[WORDS_MAX + 1];
	int status = t->head.status;

	words_of(t, words);
	return err_set(e, code_of(status), "%.100s answered %d: %s", host, status,
		       words[0] ? words : meaning_of(status));
}
