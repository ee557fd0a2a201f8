/*
 * base/strv.c - a growing, NULL-terminated vector of owned strings.
 */
#include "base/strv.h"

#include <stdlib.h>

#include "base/mem.h"

void strv_done(struct strv *s)
{
	for (size_t i = 0; i < s->len; i++)
		free(s->v[i]);
	free(s->v);
	*s = STRV_INIT;
}

void strv_add(struct strv *s, const char *text)
{
	strv_take(s, mem_strdup(text));
}

void strv_add_view(struct strv *s, struct view text)
{
	strv_take(s, mem_strndup(text.p, text.len));
}

void strv_take(struct strv *s, char *text)
{
	if (s->len + 2 > s->cap) {
		s->cap = MAX(2 * s->cap, (size_t)8);
		s->v = mem_resize(s->v, s->cap, sizeof(*s->v));
	}
	s->v[s->len++] = text;
	s->v[s->len] = NULL;
}

void strv_copy(struct strv *s, char *const *v)
{
	for (; v && *v; v++)
		strv_add(s, *v);
}

char *const *strv_args(const struct strv *s)
{
	static char *const none[] = {NULL};

	return s->v ? s->v : none;
}

/* Index of the "name=..." entry, or s->len. */
static size_t env_find(const struct strv *s, struct view name)
{
	for (size_t i = 0; i < s->len; i++) {
		struct view entry = view_of(s->v[i]);

		if (entry.len > name.len && entry.p[name.len] == '=' && view_starts(entry, name))
			return i;
	}
	return s->len;
}

void strv_env_set(struct strv *s, struct view name, struct view value)
{
	size_t at = env_find(s, name);
	char *entry = mem_alloc(name.len + value.len + 2);

	if (name.len > 0)
		memcpy(entry, name.p, name.len);
	entry[name.len] = '=';
	if (value.len > 0)
		memcpy(entry + name.len + 1, value.p, value.len);
	entry[name.len + 1 + value.len] = '\0';
	if (at == s->len) {
		strv_take(s, entry);
		return;
	}
	free(s->v[at]);
	s->v[at] = entry;
}

void strv_env_unset(struct strv *s, struct view name)
{
	size_t at = env_find(s, name);

	if (at == s->len)
		return;
	free(s->v[at]);
	memmove(s->v + at, s->v + at + 1, (s->len - at) * sizeof(*s->v));
	s->len--;
}

const char *strv_env_get(const struct strv *s, struct view name)
{
	size_t at = env_find(s, name);

	return at < s->len ? s->v[at] + name.len + 1 : NULL;
}
