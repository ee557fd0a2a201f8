/*
 * execd/file_info.c - a file's facts as JSON.
 */
#include "execd/file_info.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "codec/json_writer.h"
#include "codec/rfc3339.h"
#include "execd/file_names.h"
#include "execd/users.h"

/* Longest path of a walk, four bytes for each of its own. */
#define NAME_TEXT_MAX (4u << 20)

void file_owners_init(struct file_owners *o)
{
	*o = (struct file_owners){0};
}

void file_owners_done(struct file_owners *o)
{
	users_free(o->users);
	o->users = NULL;
}

static void look_up(struct file_owners *o, uid_t uid, gid_t gid)
{
	bool first = !o->users;

	if (first)
		o->users = users_load();
	if (first || uid != o->uid) {
		o->uid = uid;
		o->user = users_name(o->users, uid);
		if (o->user.len == 0) {
			snprintf(o->uid_text, sizeof(o->uid_text), "%u", uid);
			o->user = view_of(o->uid_text);
		}
	}
	if (first || gid != o->gid) {
		o->gid = gid;
		o->group = users_group(o->users, gid);
		if (o->group.len == 0) {
			snprintf(o->gid_text, sizeof(o->gid_text), "%u", gid);
			o->group = view_of(o->gid_text);
		}
	}
}

static const char *type_name(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "symlink";
	default:
		return "other";
	}
}

static void put_time(struct json_writer *w, const char *key, struct timespec t)
{
	char text[RFC3339_MAX];
	int64_t ns;

	/* A file system may hold times that 64 bits of nanoseconds can not: the nearest one. */
	if (__builtin_mul_overflow((int64_t)t.tv_sec, INT64_C(1000000000), &ns) ||
	    __builtin_add_overflow(ns, (int64_t)t.tv_nsec, &ns))
		ns = t.tv_sec < 0 ? INT64_MIN : INT64_MAX;
	rfc3339_format(ns, text);
	json_put_cstr(w, key, text);
}

void file_info_write_name(struct json_writer *w, struct view name)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(NAME_TEXT_MAX);

	/* The escape character begins with F4; most names are spared the copy. */
	if (utf8_valid(name) && !view_has(name, '\xf4')) {
		json_write_string(w, name);
		return;
	}
	if (file_name_escape(&text, name) < 0)
		w->failed = -E2BIG;
	json_write_string(w, buf_view(&text));
}

void file_info_write_key(struct json_writer *w, struct view requested)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(NAME_TEXT_MAX);
	osb_cleanup(arena_done) struct arena scratch;
	struct view name = requested;

	arena_init(&scratch, NAME_TEXT_MAX);
	if (utf8_valid(requested)) {
		json_write_key_view(w, requested);
		return;
	}
	if (file_name_unescape(&scratch, requested, &name) < 0 || file_name_escape(&text, name) < 0)
		w->failed = -E2BIG;
	json_write_key_view(w, buf_view(&text));
}

/* 0755 -> 755 */
static int64_t octal_digits(mode_t mode)
{
	return (mode >> 6 & 7) * 100 + (mode >> 3 & 7) * 10 + (mode & 7);
}

void file_info_write(struct json_writer *w, struct view path, const struct stat *st,
		     struct file_owners *o)
{
	look_up(o, st->st_uid, st->st_gid);

	json_write_object(w);
	json_write_key(w, "path");
	file_info_write_name(w, path);
	json_put_cstr(w, "type", type_name(st->st_mode));
	json_put_int(w, "size", st->st_size);
	put_time(w, "modified_at", st->st_mtim);
	put_time(w, "created_at", st->st_ctim);
	json_put_string(w, "owner", o->user);
	json_put_string(w, "group", o->group);
	json_put_int(w, "mode", octal_digits(st->st_mode));
	json_write_object_end(w);
}
