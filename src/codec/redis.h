/*
 * codec/redis.h - commands for a Redis server, its answers (RESP 2), and the URL of one.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macro.h"
#include "base/view.h"

struct buf;
struct err;

#define REDIS_HOST_MAX	 254
#define REDIS_SECRET_MAX 512
#define REDIS_PORT	 6379
#define REDIS_LINE_MAX	 4096
#define REDIS_BULK_MAX	 65536

struct redis_url {
	char host[REDIS_HOST_MAX]; /* a name or an address, without brackets */
	uint16_t port;
	char user[REDIS_SECRET_MAX];	 /* "" = none */
	char password[REDIS_SECRET_MAX]; /* "" = none */
	uint32_t db;
};

/* "redis://[[user]:password@]host[:port][/db]", user and password percent-encoded.  -EINVAL with a
 * sentence that repeats no secret; -ENOTSUP for TLS and unix sockets. */
osb_must_check int redis_url_parse(struct view text, struct redis_url *ret, struct err *e);

/* Appends a command of `n` words.  0 or -E2BIG. */
osb_must_check int redis_command(struct buf *out, const struct view *words, size_t n);

enum redis_kind { REDIS_STATUS, REDIS_ERROR, REDIS_INTEGER, REDIS_BULK, REDIS_NIL };

struct redis_reply {
	enum redis_kind kind;
	struct view text; /* of a status, an error or a bulk string; points into the input */
	int64_t number;
};

/*
 * The first answer in `in`: its length, 0 when it is not complete, -EINVAL when it is none,
 * -E2BIG above the limits.  Arrays are not understood: nothing here asks for one.
 */
osb_must_check ssize_t redis_reply_parse(struct view in, struct redis_reply *ret);
