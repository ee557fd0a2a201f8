/*
 * image/layer_path.c - pure text work; nothing here looks at a file.
 */
#include "image/layer_path.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/err.h"

#define MARK ".wh."

int layer_path_clean(struct view path, char ret[LAYER_PATH_MAX + 1], struct err *e)
{
	struct view rest = path, name, shown = view_first(path, 100);
	size_t n = 0;

	while (view_split(&rest, '/', &name)) {
		if (name.len == 0 || view_is(name, "."))
			continue;
		if (view_is(name, ".."))
			return err_set(e, -EBADMSG, "'" VIEW_FMT "' leads out of the layer",
				       VIEW_ARG(shown));
		if (name.len > NAME_MAX || n + 1 + name.len > LAYER_PATH_MAX)
			return err_set(e, -EBADMSG, "'" VIEW_FMT "...' is too long",
				       VIEW_ARG(shown));
		if (n > 0)
			ret[n++] = '/';
		memcpy(ret + n, name.p, name.len);
		n += name.len;
	}
	ret[n] = '\0';
	return 0;
}

const char *layer_path_split(const char *clean, size_t *ret_dir_len)
{
	const char *slash = strrchr(clean, '/');

	*ret_dir_len = slash ? (size_t)(slash - clean) : 0;
	return slash ? slash + 1 : clean;
}

/* What a directory on the way is called: a note makes the whole path one. */
static int check_way(const char *clean, size_t dir_len, bool *ret_note, struct err *e)
{
	struct view rest = view_mem(clean, dir_len), name;

	*ret_note = false;
	while (view_split(&rest, '/', &name)) {
		if (view_starts(name, VIEW(MARK MARK)))
			*ret_note = true;
		else if (view_starts(name, VIEW(MARK)))
			return err_set(e, -EBADMSG, "'%.100s' is below a whiteout", clean);
	}
	return 0;
}

int layer_path_kind(const char *clean, enum layer_name *ret, const char **ret_name, struct err *e)
{
	size_t dir_len, mark = sizeof(MARK) - 1;
	const char *name = layer_path_split(clean, &dir_len);
	bool note;
	int r = check_way(clean, dir_len, &note, e);

	if (r < 0)
		return r;
	*ret_name = name;
	if (note) {
		*ret = LAYER_NAME_NOTE;
	} else if (strcmp(name, MARK MARK ".opq") == 0) {
		*ret = LAYER_NAME_OPAQUE;
	} else if (strncmp(name, MARK MARK, 2 * mark) == 0) {
		*ret = LAYER_NAME_NOTE;
	} else if (strncmp(name, MARK, mark) == 0) {
		name += mark;
		if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
			return err_set(e, -EBADMSG, "'%.100s' is a whiteout of nothing", clean);
		*ret = LAYER_NAME_WHITEOUT;
		*ret_name = name;
	} else {
		*ret = LAYER_NAME_PLAIN;
	}
	return 0;
}
