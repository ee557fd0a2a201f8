/*
 * System calls that fail around TLS: certificates are read or refused with a reason, a handshake
 * ends in exactly one answer on either side, and nothing stays open.
 */
#include "../unit/net/tls_certs.h"

#include "base/fd.h"
#include "fault.h"
#include "net/tls.h"
#include "net/tls_files.h"

static struct test_cert cert;
static char dir[] = "/tmp/fault.XXXXXX", cert_file[64], key_file[64];
static struct loop *loop;

static int make_files(void **state)
{
	struct err e = ERR_NONE;

	if (!mkdtemp(dir))
		return -1;
	snprintf(cert_file, sizeof(cert_file), "%s/cert.pem", dir);
	snprintf(key_file, sizeof(key_file), "%s/key.pem", dir);
	cert = test_cert_new("DNS:good.test", NULL, 3600);
	write_text(cert_file, cert.cert_pem);
	write_text(key_file, cert.key_pem);
	return loop_new(&loop, &e);
}

static int remove_files(void **state)
{
	loop_free(loop);
	test_cert_done(&cert);
	(void)unlink(cert_file);
	(void)unlink(key_file);
	return rmdir(dir);
}

static int pass_files_on(void *arg)
{
	struct tls_server *s = NULL;
	struct tls_files *f = NULL;
	struct err e = ERR_NONE;
	int r = tls_files_new(cert_file, key_file, &f, &e);

	if (r == 0)
		r = tls_files_use(tls_files_text(f), &s, &e);
	if (r < 0) {
		assert_int_equal(e.code, r);
		assert_true(e.msg[0] != '\0');
	}
	tls_server_free(s);
	tls_files_free(f);
	return r;
}

static void certificates_on_their_way(void **state)
{
	assert_true(fault_each(FAULT_CALL, pass_files_on, NULL) > 3);
}

struct answers {
	int calls, failed;
};

static void answered(void *arg, int fd, const struct err *e)
{
	struct answers *a = arg;

	a->calls++;
	if (fd < 0) {
		a->failed++;
		assert_true(e->code < 0 && e->msg[0]);
	}
	fd_close(fd);
}

static bool both_answered(void *arg)
{
	return ((struct answers *)arg)->calls == 2;
}

/* Both sides are ours; the client knows the certificate by heart. */
static int shake_hands(void *arg)
{
	struct tls_bridges *all = tls_bridges_new(loop);
	struct tls_server *s = NULL;
	struct tls_client *c = NULL;
	struct err e = ERR_NONE;
	struct answers a = {0};
	int wire[2], r;

	r = tls_server_new(cert_file, key_file, &s, &e);
	if (r == 0)
		r = tls_client_new(cert_file, &c, &e);
	if (r == 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, wire) < 0)
		r = -errno;
	if (r == 0) {
		(void)tls_accept(all, s, wire[0], VIEW_NONE, answered, &a);
		(void)tls_connect(all, c, wire[1], "good.test", answered, &a);
		spin(loop, both_answered, &a);
		r = a.failed ? -EIO : 0;
	}
	tls_bridges_free(all);
	tls_server_free(s);
	tls_client_free(c);
	return r;
}

static void handshakes(void **state)
{
	assert_true(fault_each(FAULT_CALL, shake_hands, NULL) > 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(certificates_on_their_way),
		cmocka_unit_test(handshakes),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
