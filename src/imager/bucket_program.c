/*
 * imager/bucket_program.c - the programs that mount object stores, and how each is spoken to.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/view.h"
#include "codec/json.h"
#include "imager/bucket.h"

#define KEYS_FILE "/dev/fd/3"

static const struct {
	const char *name;
	int kind;
} known[] = {
	{"ossfs2", BUCKET_OSSFS2},
	{"ossfs", BUCKET_OSSFS},
	{"s3fs", BUCKET_S3FS},
};

static const char *const directories[] = {
	"/usr/local/bin", "/usr/local/sbin", "/usr/bin", "/usr/sbin", "/bin", "/sbin"};

static int kind_of(const char *path)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (strcmp(known[i].name, name) == 0)
			return known[i].kind;
	return BUCKET_OSSFS;
}

static bool find(const char *name, struct bucket_program *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(directories); i++) {
		snprintf(ret->path, sizeof(ret->path), "%s/%s", directories[i], name);
		if (access(ret->path, X_OK) == 0)
			return true;
	}
	return false;
}

int bucket_find_program(struct view version, const char *named, struct bucket_program *ret,
			struct err *e)
{
	/* The one that was asked for first, then whatever there is. */
	size_t first = view_is(version, "1.0") ? 1 : 0;

	if (named && *named) {
		if (strlen(named) >= sizeof(ret->path) || access(named, X_OK) < 0)
			return err_set(e, -ENOENT, "storage.ossfs_program: '%.80s' is no program",
				       named);
		snprintf(ret->path, sizeof(ret->path), "%s", named);
		ret->kind = kind_of(named);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		size_t at = (first + i) % ARRAY_LEN(known);

		if (find(known[at].name, ret)) {
			ret->kind = known[at].kind;
			return 0;
		}
	}
	return err_set(e, -ENOENT,
		       "buckets are mounted by ossfs2, ossfs or s3fs, and none of them is "
		       "installed; Debian has s3fs (apt install s3fs)");
}

static void add_option(struct strv *args, const char *name, struct view value)
{
	strv_add(args, "-o");
	strv_take(args, value.p ? mem_printf("%s=%.*s", name, (int)value.len, value.p)
				: mem_strdup(name));
}

static int plain_command(const struct bucket_program *p, const struct bucket *b,
			 const char *mount_point, struct strv *args, struct buf *keys,
			 struct err *e)
{
	const char *scheme =
		view_find_view(b->endpoint, VIEW("://")) < b->endpoint.len ? "" : "https://";
	osb_cleanup(mem_freep) char *url =
		mem_printf("%s%.*s", scheme, (int)b->endpoint.len, b->endpoint.p);
	struct view option;
	int r;

	strv_add_view(args, b->bucket);
	strv_add(args, mount_point);
	add_option(args, "url", view_of(url));
	add_option(args, "passwd_file", VIEW(KEYS_FILE));
	add_option(args, "allow_other", VIEW_NONE);
	if (b->read_only)
		add_option(args, "ro", VIEW_NONE);
	for (size_t i = 0; i < json_len(b->options); i++)
		if (json_str(json_at(b->options, i), &option)) {
			strv_add(args, "-o");
			strv_add_view(args, option);
		}
	r = p->kind == BUCKET_OSSFS ? buf_printf(keys, "%.*s:", (int)b->bucket.len, b->bucket.p)
				    : 0;
	if (r == 0)
		r = buf_printf(keys, "%.*s:%.*s\n", (int)b->key_id.len, b->key_id.p,
			       (int)b->key_secret.len, b->key_secret.p);
	return r < 0 ? err_set(e, r, "the keys are too long") : 0;
}

static int ossfs2_command(const struct bucket *b, const char *mount_point, struct strv *args,
			  struct buf *keys, struct err *e)
{
	struct view option;
	int r = buf_printf(keys,
			   "--oss_endpoint=%.*s\n--oss_bucket=%.*s\n--oss_access_key_id=%.*s\n"
			   "--oss_access_key_secret=%.*s\n",
			   (int)b->endpoint.len, b->endpoint.p, (int)b->bucket.len, b->bucket.p,
			   (int)b->key_id.len, b->key_id.p, (int)b->key_secret.len,
			   b->key_secret.p);

	for (size_t i = 0; r == 0 && i < json_len(b->options); i++)
		if (json_str(json_at(b->options, i), &option))
			r = buf_printf(keys, "--%.*s\n", (int)option.len, option.p);
	strv_add(args, "mount");
	strv_add(args, mount_point);
	strv_add(args, "-c");
	strv_add(args, KEYS_FILE);
	return r < 0 ? err_set(e, r, "the options are too long") : 0;
}

int bucket_command(const struct bucket_program *p, const struct bucket *b, const char *mount_point,
		   struct strv *args, struct buf *keys, struct err *e)
{
	strv_add(args, p->path);
	if (p->kind == BUCKET_OSSFS2)
		return ossfs2_command(b, mount_point, args, keys, e);
	return plain_command(p, b, mount_point, args, keys, e);
}
