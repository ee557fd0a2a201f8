/*
 * net/tls_files.h - a certificate and its key, from their files to a process that sees neither.
 *
 * A keeper, who may read the files, looks whether they are good and passes their text on as a
 * sealed file in memory.  What is not good never replaces what is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"

struct err;
struct tls_files;
struct tls_server;

/* ---- the keeper ---- */

/* Reads and watches them. */
osb_must_check int tls_files_new(const char *cert, const char *key, struct tls_files **ret,
				 struct err *e);
void tls_files_free(struct tls_files *f); /* accepts NULL */

int tls_files_text(const struct tls_files *f); /* of the last good ones; borrowed */

/* Readable when something has happened near the files; then tls_files_stirred() is due. */
int tls_files_watch(const struct tls_files *f);
void tls_files_stirred(struct tls_files *f);

/* When to look at the files; 0 = nothing has happened. */
uint64_t tls_files_due_us(const struct tls_files *f);

/* Looks at them, with `always` even if they seem to be the same: 1 = there is a new text, 0 = there
 * is none, -errno = they are not good and the old ones stay. */
osb_must_check int tls_files_look(struct tls_files *f, bool always, struct err *e);

int64_t
tls_files_until(const struct tls_files *f); /* of the last good ones; as tls_server_until() */

/* ---- who serves ---- */

/* Uses the text of a file that the keeper has made (borrowed); *s is made if it is NULL. */
osb_must_check int tls_files_use(int fd, struct tls_server **s, struct err *e);
