/*
 * image/layer_path.h - paths of a layer's archive, made safe, and what their names say.
 */
#pragma once

#include <stddef.h>

#include "base/macro.h"
#include "base/view.h"

struct err;

#define LAYER_PATH_MAX 4095

enum layer_name {
	LAYER_NAME_PLAIN,
	LAYER_NAME_WHITEOUT, /* ".wh.NAME": NAME of the layers below is gone */
	LAYER_NAME_OPAQUE,   /* ".wh..wh..opq": all of the directory in the layers below is gone */
	LAYER_NAME_NOTE,     /* other ".wh..wh.": notes of a file system of old, no files */
};

/*
 * "/a/./b//c/" becomes "a/b/c", "./" becomes "".  Whatever leads up, is too long or has a name that
 * no file may have is refused with -EBADMSG.
 */
osb_must_check int layer_path_clean(struct view path, char ret[LAYER_PATH_MAX + 1], struct err *e);

/*
 * The kind of the last name of a clean path; *ret_name is what a whiteout is about.  -EBADMSG when
 * a whiteout names nothing or what cannot be removed, or when another name of the path is one.
 */
osb_must_check int layer_path_kind(const char *clean, enum layer_name *ret, const char **ret_name,
				   struct err *e);

/* The last name, and the length of the path of the directory that holds it. */
const char *layer_path_split(const char *clean, size_t *ret_dir_len);
