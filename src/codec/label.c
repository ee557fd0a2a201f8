/*
 * codec/label.c - [prefix/]name and value.
 */
#include "codec/label.h"

#define NAME_MAX_LEN   63
#define PREFIX_MAX_LEN 253

static bool is_lower_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_alnum(char c)
{
	return is_lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

static bool name_valid(struct view v)
{
	if (v.len == 0 || v.len > NAME_MAX_LEN || !is_alnum(v.p[0]) || !is_alnum(v.p[v.len - 1]))
		return false;
	for (size_t i = 0; i < v.len; i++)
		if (!is_alnum(v.p[i]) && v.p[i] != '-' && v.p[i] != '_' && v.p[i] != '.')
			return false;
	return true;
}

static bool dns_label_valid(struct view v)
{
	if (v.len == 0 || !is_lower_alnum(v.p[0]) || !is_lower_alnum(v.p[v.len - 1]))
		return false;
	for (size_t i = 0; i < v.len; i++)
		if (!is_lower_alnum(v.p[i]) && v.p[i] != '-')
			return false;
	return true;
}

static bool prefix_valid(struct view v)
{
	struct view label;

	if (v.len == 0 || v.len > PREFIX_MAX_LEN || v.p[v.len - 1] == '.')
		return false;
	while (view_split(&v, '.', &label))
		if (!dns_label_valid(label))
			return false;
	return true;
}

bool label_key_valid(struct view key)
{
	size_t slash = view_find(key, '/');

	if (slash == key.len)
		return name_valid(key);
	return prefix_valid(view_first(key, slash)) && name_valid(view_skip(key, slash + 1));
}

bool label_value_valid(struct view value)
{
	return value.len == 0 || name_valid(value);
}

bool label_key_reserved(struct view key)
{
	return view_starts(key, VIEW("opensandbox.io/"));
}
