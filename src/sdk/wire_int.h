/*
 * sdk/wire_int.h - between wire.c and wire_tls.c.
 */
#pragma once

#include "sdk/wire.h"

struct wire_tls;

struct wire {
	int fd;
	struct wire_tls *tls; /* NULL = plain */
	bool no_sendfile;
};

osb_must_check int wire_wait(int fd, short events, const struct wire_limit *limit, struct err *e);
osb_must_check ssize_t wire_plain_write(struct wire *w, struct view bytes,
					const struct wire_limit *limit, struct err *e);
osb_must_check ssize_t wire_plain_read(struct wire *w, void *p, size_t n,
				       const struct wire_limit *limit, struct err *e);

osb_must_check int wire_tls_begin(struct wire *w, struct wire_trust *trust, const char *host,
				  const struct wire_limit *limit, struct err *e);
void wire_tls_end(struct wire *w);
osb_must_check ssize_t wire_tls_write(struct wire *w, struct view bytes,
				      const struct wire_limit *limit, struct err *e);
osb_must_check ssize_t wire_tls_read(struct wire *w, void *p, size_t n,
				     const struct wire_limit *limit, struct err *e);
osb_must_check int wire_tls_say_end(struct wire *w, struct err *e); /* close_notify */
bool wire_tls_pending(const struct wire *w);			    /* decrypted bytes wait */
