/*
 * net/tls_wire.c - where TLS meets its socket: bytes that came early first, and no SIGPIPE.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "net/tls_int.h"

static int wire_read(BIO *bio, char *p, int size)
{
	struct tls_wire *w = BIO_get_data(bio);
	ssize_t n;

	BIO_clear_retry_flags(bio);
	if (size <= 0)
		return 0;
	if (w->early.len) {
		size_t take = MIN(w->early.len, (size_t)size);

		memcpy(p, buf_view(&w->early).p, take);
		buf_consume(&w->early, take);
		if (!w->early.len)
			buf_done(&w->early);
		return (int)take;
	}
	n = recv(w->fd, p, (size_t)size, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_read(bio);
	else if (n < 0)
		w->error = errno;
	w->at_end = n == 0;
	return (int)n;
}

static int wire_write(BIO *bio, const char *p, int len)
{
	struct tls_wire *w = BIO_get_data(bio);
	ssize_t n;

	BIO_clear_retry_flags(bio);
	if (len <= 0)
		return 0;
	n = send(w->fd, p, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_write(bio);
	else if (n < 0)
		w->error = errno;
	return (int)n;
}

static long wire_ctrl(BIO *bio, int cmd, long n, void *p)
{
	const struct tls_wire *w = BIO_get_data(bio);

	switch (cmd) {
	case BIO_CTRL_FLUSH:
		return 1;
	case BIO_CTRL_EOF:
		return w->at_end;
	default:
		return 0;
	}
}

static BIO_METHOD *wire_method(void)
{
	static BIO_METHOD *method;

	if (method)
		return method;
	method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "wire");
	if (!method || !BIO_meth_set_read(method, wire_read) ||
	    !BIO_meth_set_write(method, wire_write) || !BIO_meth_set_ctrl(method, wire_ctrl)) {
		BIO_meth_free(method);
		method = NULL;
	}
	return method;
}

BIO *tls_wire_bio(struct tls_wire *w)
{
	BIO_METHOD *method = wire_method();
	BIO *bio = method ? BIO_new(method) : NULL;

	if (!bio)
		return NULL;
	BIO_set_data(bio, w);
	BIO_set_init(bio, 1);
	return bio;
}
