/*
 * policy/preview_headers.c - headers of requests that no sandbox sees, and answers' headers that
 * mean another place than the client's.
 */
#include <stdio.h>

#include "base/arena.h"
#include "base/num.h"
#include "policy/preview.h"

/* clang-format off */
#define EVERYWHERE                                                                                 \
	"OPEN-SANDBOX-API-KEY", PREVIEW_TO_HEADER, PREVIEW_OLD_HEADER, PREVIEW_SECURE_HEADER,      \
	"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Port",                    \
	"X-Forwarded-Proto", "X-Real-IP", "Host", NULL
/* clang-format on */

const char *const preview_dropped[] = {EVERYWHERE};
const char *const preview_dropped_shared[] = {"Authorization", "Cookie", EVERYWHERE};
const char *const preview_dropped_upgrade[] = {"Origin", "Authorization", "Cookie", EVERYWHERE};

void preview_host(uint16_t port, char ret[PREVIEW_HOST_MAX])
{
	char digits[NUM_DECIMAL_MAX];
	struct view number = num_format_u64(port, digits);

	memcpy(ret, "127.0.0.1:", 10);
	memcpy(ret + 10, number.p, number.len);
	ret[10 + number.len] = '\0';
}

/* Takes "http://host:port" off the front if that is how the sandbox names itself. */
static bool take_own_origin(struct view *location, uint16_t port)
{
	static const char *const names[] = {"127.0.0.1", "localhost"};
	struct view rest = *location;

	if (!view_istarts(rest, VIEW("http://")))
		return false;
	rest = view_skip(rest, 7);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct view name = view_of(names[i]), behind;
		char text[8];

		if (!view_istarts(rest, name))
			continue;
		behind = view_skip(rest, name.len);
		snprintf(text, sizeof(text), ":%u", port);
		if (view_starts(behind, view_of(text)))
			behind = view_skip(behind, strlen(text));
		else if (port != 80)
			continue;
		if (behind.len && behind.p[0] != '/' && behind.p[0] != '?' && behind.p[0] != '#')
			continue;
		*location = behind;
		return true;
	}
	return false;
}

struct view preview_location(struct arena *a, struct view location, struct view prefix,
			     uint16_t port)
{
	struct view rest = location;
	bool own = take_own_origin(&rest, port);
	char *moved;

	/* "//x" names another host. */
	if (!own && (!view_starts(rest, VIEW("/")) || view_starts(rest, VIEW("//"))))
		return location;
	if (prefix.len == 0 && (!own || view_starts(rest, VIEW("//"))))
		return location;
	moved = arena_printf(a, VIEW_FMT "%s" VIEW_FMT, VIEW_ARG(prefix),
			     view_starts(rest, VIEW("/")) ? "" : "/", VIEW_ARG(rest));
	return moved ? view_of(moved) : location;
}

/* The attribute's value, if it is `name`. */
static bool is_attribute(struct view part, const char *name, struct view *ret)
{
	struct view rest = part, key;

	if (!view_split(&rest, '=', &key) || !view_iis(view_trim(key), name))
		return false;
	*ret = view_trim(rest);
	return true;
}

/* A browser takes the last of an attribute that is repeated: so all of them go, and one is added.
 */
struct view preview_cookie(struct arena *a, struct view cookie, struct view prefix)
{
	struct view rest = cookie, part, value, path = VIEW_NONE;
	size_t size = cookie.len + prefix.len + sizeof("; Path=");
	char *out = arena_alloc(a, size);
	bool first = true;
	size_t n = 0;

	if (!out)
		return VIEW_NONE;
	for (; view_split(&rest, ';', &part); first = false) {
		if (!first && is_attribute(part, "Domain", &value))
			continue;
		if (!first && prefix.len && is_attribute(part, "Path", &value)) {
			path = value;
			continue;
		}
		if (!first)
			out[n++] = ';';
		memcpy(out + n, part.p, part.len);
		n += part.len;
	}
	if (view_starts(path, VIEW("/"))) {
		path = view_is(path, "/") ? VIEW_NONE : path;
		n += (size_t)snprintf(out + n, size - n, "; Path=" VIEW_FMT VIEW_FMT,
				      VIEW_ARG(prefix), VIEW_ARG(path));
	}
	return view_mem(out, n);
}

struct view preview_answer_header(struct arena *a, struct view name, struct view value,
				  struct view prefix, uint16_t port)
{
	if (view_iis(name, "Location"))
		return preview_location(a, value, prefix, port);
	if (view_iis(name, "Service-Worker-Allowed"))
		return prefix.len ? VIEW_NONE : value;
	return preview_cookie(a, value, prefix);
}
