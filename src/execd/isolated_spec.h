/*
 * execd/isolated_spec.h - what a client asks of an isolated session, checked.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/strv.h"
#include "base/view.h"

struct app;
struct err;
struct json_writer;

#define ISOLATED_MAX_PATHS 64 /* extra writable paths, and binds */
#define ISOLATED_MAX_KEYS  256

enum isolated_mode { ISOLATED_RW, ISOLATED_OVERLAY, ISOLATED_RO, ISOLATED_MODES_ };
extern const char *const isolated_mode_name[ISOLATED_MODES_];

struct isolated_bind {
	const char *source; /* once resolved: absolute, no symlinks */
	const char *dest;   /* absolute */
	bool readonly;
};

struct isolated_spec {
	struct arena memory;   /* of everything below */
	const char *workspace; /* once resolved: absolute, no symlinks, exists */
	enum isolated_mode mode;
	bool balanced; /* profile; else strict */
	bool share_net;
	bool env_allow; /* only `env_keys` pass; else all but those */
	bool userns;	/* uid_mode */
	bool has_uid, has_gid;
	uid_t uid;
	gid_t gid;
	int64_t idle_s; /* 0 = never */
	const char *writable[ISOLATED_MAX_PATHS];
	size_t writable_n;
	struct isolated_bind binds[ISOLATED_MAX_PATHS];
	size_t binds_n;
	const char *env_keys[ISOLATED_MAX_KEYS];
	size_t env_keys_n;
};

/* Decodes a creation body; nothing outside is looked at.  isolated_spec_done() either way. */
osb_must_check int isolated_spec_parse(struct isolated_spec *s, struct view body, struct err *e);

/*
 * Finds what the paths really name.  A missing workspace directory is made.  `allowed` lists the
 * directories below which extra writable paths and writable binds may lie.
 */
osb_must_check int isolated_spec_resolve(struct isolated_spec *s, struct app *app,
					 const struct strv *allowed, struct err *e);
void isolated_spec_done(struct isolated_spec *s);

/* The creation fields again, as members of the open object. */
void isolated_spec_write(const struct isolated_spec *s, struct json_writer *w);

/* The daemon's environment as the session may see it. */
void isolated_spec_env(const struct isolated_spec *s, const struct strv *from, struct strv *ret);
