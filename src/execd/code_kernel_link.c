/*
 * execd/code_kernel_link.c - see code_kernel_link.h.
 *
 * TCP on loopback, as every kernel can; the connection file is ours alone, and messages are signed
 * with the key in it.
 */
#include "execd/code_kernel_link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/strv.h"
#include "codec/json_writer.h"
#include "codec/jupyter_msg.h"
#include "execd/code_kernelspec.h"
#include "sys/spawn.h"

#define MESSAGE_MAX	 ((size_t)64 << 20)
#define FILE_MAX	 4096
#define RETRY_MS	 20
#define START_TIMEOUT_US 60000000

static const char *const port_names[] = {
	"shell_port", "iopub_port", "control_port", "stdin_port", "hb_port",
};

static const char *const socket_types[KERNEL_CHANNELS_] = {
	[KERNEL_SHELL] = "DEALER",
	[KERNEL_IOPUB] = "SUB",
	[KERNEL_CONTROL] = "DEALER",
};

static struct sockaddr_in loopback(unsigned short port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

/* Free ones: all are bound at once, so that they differ, and given up for the kernel to take. */
static int choose_ports(struct kernel_link *l, struct err *e)
{
	int fds[ARRAY_LEN(port_names)];
	size_t n = 0;
	int r = 0;

	for (; r == 0 && n < ARRAY_LEN(port_names); n++) {
		struct sockaddr_in a = loopback(0);
		socklen_t len = sizeof(a);

		fds[n] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fds[n] < 0 || bind(fds[n], (struct sockaddr *)&a, len) < 0 ||
		    getsockname(fds[n], (struct sockaddr *)&a, &len) < 0)
			r = err_set(e, -errno, "choose ports for the kernel: %m");
		l->ports[n] = ntohs(a.sin_port);
	}
	while (n > 0)
		fd_close(fds[--n]);
	return r;
}

static int write_file(const char *path, struct view text, struct err *e)
{
	osb_cleanup(fd_closep) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, text.p, text.len) != (ssize_t)text.len)
		return err_set(e, -errno, "write %s: %m", path);
	return 0;
}

static int write_connection_file(const struct kernel_link *l, const char *path, struct err *e)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(FILE_MAX);
	struct json_writer w;

	json_writer_init(&w, &text);
	json_write_object(&w);
	json_put_cstr(&w, "transport", "tcp");
	json_put_cstr(&w, "ip", "127.0.0.1");
	for (size_t i = 0; i < ARRAY_LEN(port_names); i++)
		json_put_int(&w, port_names[i], l->ports[i]);
	json_put_cstr(&w, "key", l->key);
	json_put_cstr(&w, "signature_scheme", "hmac-sha256");
	json_put_cstr(&w, "kernel_name", "");
	json_write_object_end(&w);
	if (json_writer_end(&w) < 0)
		return err_set(e, -E2BIG, "the connection file is too long");
	return write_file(path, buf_view(&text), e);
}

static char *make_dir(struct err *e)
{
	const char *tmp = getenv("TMPDIR");
	char *dir = mem_printf("%s/opensandbox-kernel-XXXXXX", tmp && *tmp ? tmp : "/tmp");

	if (mkdtemp(dir))
		return dir;
	(void)!err_set(e, -errno, "make %s: %m", dir);
	free(dir);
	return NULL;
}

/* What stands in braces becomes `value`. */
static char *replaced(const char *arg, const char *name, const char *value)
{
	const char *at = strstr(arg, name);

	return at ? mem_printf("%.*s%s%s", (int)(at - arg), arg, value, at + strlen(name))
		  : mem_strdup(arg);
}

static int start(struct kernel_link *l, const struct code_kernelspec *spec,
		 const char *resource_dir, const char *file, struct err *e)
{
	struct strv args = STRV_INIT, env = STRV_INIT;
	int r;

	for (size_t i = 0; i < spec->argv.len; i++) {
		osb_cleanup(mem_freep) char *once =
			replaced(spec->argv.v[i], "{connection_file}", file);

		strv_take(&args, replaced(once, "{resource_dir}", resource_dir));
	}
	strv_copy(&env, environ);
	for (size_t i = 0; i < spec->env.len; i++) {
		struct view value = view_of(spec->env.v[i]), name;

		(void)view_split(&value, '=', &name);
		strv_env_set(&env, name, value);
	}
	r = spawn(
		&(struct spawn){
			.path = args.len && args.v[0][0] == '/' ? args.v[0] : NULL,
			.search_path = strv_env_get(&env, VIEW("PATH")),
			.argv = strv_args(&args),
			.env = strv_args(&env),
			.fds = {-1, STDOUT_FILENO, STDERR_FILENO},
			.flags = SPAWN_DIE_WITH_US,
		},
		&l->pid, &l->pidfd, e);
	strv_done(&args);
	strv_done(&env);
	return r < 0 ? err_ctx(e, "start the kernel") : 0;
}

static int send_all(int fd, struct view bytes, struct err *e)
{
	while (bytes.len > 0) {
		ssize_t n = send(fd, bytes.p, bytes.len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(e, -errno, "send to the kernel: %m");
		bytes = view_skip(bytes, (size_t)n);
	}
	return 0;
}

/* TCP lets a socket connect to itself if it was given the very port that it asks for. */
static bool is_own_port(int fd, unsigned short port)
{
	struct sockaddr_in a = {0};
	socklen_t len = sizeof(a);

	return getsockname(fd, (struct sockaddr *)&a, &len) < 0 || ntohs(a.sin_port) == port;
}

/* -EAGAIN while nobody listens yet. */
static int try_connect(unsigned short port, int *ret, struct err *e)
{
	osb_cleanup(fd_closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in a = loopback(port);
	int one = 1;

	if (fd < 0)
		return err_set(e, -errno, "socket: %m");
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return errno == ECONNREFUSED || errno == EINTR
			       ? -EAGAIN
			       : err_set(e, -errno, "connect to the kernel: %m");
	if (is_own_port(fd, port))
		return -EAGAIN;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	*ret = take_fd(fd);
	return 0;
}

static bool has_ended(const struct kernel_link *l, unsigned wait_ms)
{
	struct pollfd p = {.fd = l->pidfd, .events = POLLIN};

	return poll(&p, 1, (int)wait_ms) > 0;
}

static int connect_channel(struct kernel_link *l, enum kernel_channel c, uint64_t until,
			   struct err *e)
{
	osb_cleanup(buf_done) struct buf hello = BUF_INIT(FILE_MAX);
	int r;

	while ((r = try_connect(l->ports[c], &l->fds[c], e)) == -EAGAIN) {
		if (has_ended(l, RETRY_MS))
			return err_set(e, -ECHILD, "the kernel ended before it was ready");
		if (clock_mono_us() > until)
			return err_set(e, -ETIMEDOUT, "the kernel does not open its ports");
	}
	if (r < 0)
		return r;
	zmtp_reader_init(&l->readers[c], MESSAGE_MAX);
	if (zmtp_put_hello(&hello, socket_types[c]) < 0)
		return err_set(e, -E2BIG, "the greeting is too long");
	return send_all(l->fds[c], buf_view(&hello), e);
}

static int shake_hands(struct kernel_link *l, enum kernel_channel c, struct err *e)
{
	for (;;) {
		switch (zmtp_reader_next(&l->readers[c])) {
		case ZMTP_READY:
			return c == KERNEL_IOPUB ? send_all(l->fds[c], VIEW("\0\1\1"), e) : 0;
		case ZMTP_NONE:
			if (kernel_link_fill(l, c, e) < 0)
				return e->code;
			break;
		default:
			*e = l->readers[c].e;
			return e->code ? e->code : err_set(e, -EPROTO, "the kernel says too much");
		}
	}
}

int kernel_link_open(const struct code_kernelspec *spec, const char *resource_dir,
		     struct kernel_link *ret, struct err *e)
{
	struct kernel_link l = {.pid = -1, .pidfd = -1, .fds = {-1, -1, -1}};
	uint64_t until = clock_mono_us() + START_TIMEOUT_US;
	int r = choose_ports(&l, e);

	rand_hex(l.key);
	rand_hex(l.session);
	if (r == 0)
		l.dir = make_dir(e);
	if (l.dir) {
		osb_cleanup(mem_freep) char *file = mem_printf("%s/kernel.json", l.dir);

		r = write_connection_file(&l, file, e);
		if (r == 0)
			r = start(&l, spec, resource_dir, file, e);
	}
	r = l.dir ? r : e->code;
	for (int c = 0; r == 0 && c < KERNEL_CHANNELS_; c++)
		r = connect_channel(&l, (enum kernel_channel)c, until, e);
	for (int c = 0; r == 0 && c < KERNEL_CHANNELS_; c++)
		r = shake_hands(&l, (enum kernel_channel)c, e);
	if (r < 0) {
		kernel_link_close(&l);
		return r;
	}
	*ret = l;
	return 0;
}

void kernel_link_close(struct kernel_link *l)
{
	if (l->pid > 0)
		(void)kill(-l->pid, SIGKILL); /* it may be gone already */
	fd_close(l->pidfd);
	for (int c = 0; c < KERNEL_CHANNELS_; c++) {
		fd_close(l->fds[c]);
		zmtp_reader_done(&l->readers[c]);
	}
	if (l->dir) {
		osb_cleanup(mem_freep) char *file = mem_printf("%s/kernel.json", l->dir);

		(void)unlink(file);
		(void)rmdir(l->dir);
		free(l->dir);
	}
}

int kernel_link_send(struct kernel_link *l, enum kernel_channel to, const char *type,
		     struct view content, char ret_id[RAND_HEX_LEN + 1], struct err *e)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(2 * MESSAGE_MAX);
	struct jupyter_request q = {type, ret_id, l->session, content};

	rand_hex(ret_id);
	if (jupyter_msg_format(&q, view_of(l->key), &out) < 0)
		return err_set(e, -E2BIG, "the code is too long for a kernel");
	return send_all(l->fds[to], buf_view(&out), e);
}

int kernel_link_fill(struct kernel_link *l, enum kernel_channel from, struct err *e)
{
	char bytes[65536];
	ssize_t n;

	do
		n = recv(l->fds[from], bytes, sizeof(bytes), 0);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return err_set(e, n ? -errno : -ECONNRESET, "the kernel has closed its connection");
	if (zmtp_reader_add(&l->readers[from], view_mem(bytes, (size_t)n)) < 0)
		return err_set(e, -E2BIG, "the kernel's message is too long");
	return 0;
}

int kernel_link_next(struct kernel_link *l, enum kernel_channel from, struct jupyter_msg *ret,
		     struct err *e)
{
	struct zmtp_reader *r = &l->readers[from];

	for (;;) {
		struct view parts[ZMTP_PARTS_MAX];
		struct err ignored = ERR_NONE; /* not the kernel's message, or none that we know */

		switch (zmtp_reader_next(r)) {
		case ZMTP_NONE:
			return 0;
		case ZMTP_MESSAGE:
			for (size_t i = 0; i < r->parts; i++)
				parts[i] = zmtp_reader_part(r, i);
			if (jupyter_msg_parse(parts, r->parts, view_of(l->key), ret, &ignored) == 0)
				return 1;
			break;
		case ZMTP_READY:
			break;
		default:
			*e = r->e;
			return e->code;
		}
	}
}
