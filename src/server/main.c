/*
 * server/main.c - opensandbox-server: reads its configuration, makes its state directory its own,
 * and becomes the supervisor of the warden and the worker.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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
#include "base/log.h"
#include "base/mem.h"
#include "base/view.h"
#include "net/tls_files.h"
#include "server/config.h"
#include "server/config_schema.h"
#include "server/guard.h"
#include "server/init_config.h"
#include "server/options.h"
#include "server/privileges.h"
#include "server/state_dir.h"
#include "server/supervisor.h"
#include "server/version.h"
#include "sys/protect.h"

#define EXIT_USAGE    2
#define REFERENCE_MAX 65536

static void warn(void *path, const char *sentence)
{
	log_line(LOG_WARN, "in the configuration", LOG_S("file", path), LOG_S("what", sentence));
}

static enum log_level level_of(const char *name)
{
	if (view_iis(view_of(name), "DEBUG"))
		return LOG_DEBUG;
	if (view_istarts(view_of(name), VIEW("WARN")))
		return LOG_WARN;
	return view_iis(view_of(name), "INFO") ? LOG_INFO : LOG_ERROR;
}

static int load(const struct options *o, struct config *c, struct err *e)
{
	osb_cleanup(mem_freep) char *path = options_config_path(o->config);
	int r;

	if (!path || access(path, F_OK) < 0)
		return err_set(e, -ENOENT,
			       "there is no configuration%s%s; `opensandbox-server init-config` "
			       "writes one",
			       path ? " at " : "", path ? path : "");
	r = config_load(path, warn, path, c, e);
	if (r == 0) {
		log_set_level(level_of(c->log_level));
		r = guard_api_key(c, e);
	}
	return r;
}

/* A program beside our own. */
static int find_program(const char *given, const char *name, char ret[PATH_MAX], struct err *e)
{
	ssize_t n = 0;
	char *slash;

	if (given) {
		if (!realpath(given, ret))
			return err_set(e, -errno, "%s: %m", given);
		return 0;
	}
	n = readlink("/proc/self/exe", ret, PATH_MAX - 1);
	if (n < 0)
		return err_set(e, -errno, "find our own program: %m");
	ret[n] = '\0';
	slash = strrchr(ret, '/');
	if (!slash || (size_t)(slash - ret) + strlen(name) + 2 > PATH_MAX)
		return err_set(e, -ENAMETOOLONG, "the path of our own program is too long");
	memcpy(slash + 1, name, strlen(name) + 1);
	if (access(ret, X_OK) < 0)
		return err_set(e, -errno, "%s, which belongs beside opensandbox-server: %m", ret);
	return 0;
}

static int open_listener(const struct config *c, int *ret, struct err *e)
{
	struct sockaddr_storage a = {0};
	struct sockaddr_in *v4 = (struct sockaddr_in *)&a;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&a;
	osb_cleanup(fd_closep) int fd = -1;
	socklen_t len = sizeof(*v4);
	int on = 1;

	if (inet_pton(AF_INET, c->host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((uint16_t)c->port);
	} else if (inet_pton(AF_INET6, c->host, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((uint16_t)c->port);
		len = sizeof(*v6);
	}
	fd = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* Accepted sockets inherit TCP_NODELAY, early ones only if it is set before they come. */
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&a, len) < 0 || listen(fd, (int)c->backlog) < 0)
		return err_set(e, -errno, "listen on %s port %lld: %m", c->host,
			       (long long)c->port);
	*ret = take_fd(fd);
	return 0;
}

/* Before privileges go: the worker sees no files but its own. */
static int open_certificate(const struct config *c, struct tls_files **ret, struct err *e)
{
	int64_t left_s;
	int r;

	if (!c->tls_cert && !c->tls_key)
		return 0;
	if (!c->tls_cert || !c->tls_key)
		return err_set(e, -EINVAL, "server.tls_cert and server.tls_key belong together");
	r = tls_files_new(c->tls_cert, c->tls_key, ret, e);
	if (r < 0)
		return err_ctx(e, "server.tls_cert, server.tls_key");
	left_s = tls_files_until(*ret) - (int64_t)(clock_wall_ms() / 1000);
	if (left_s <= 0)
		log_line(LOG_WARN, "the certificate has expired; clients will refuse it",
			 LOG_S("certificate", c->tls_cert));
	return 0;
}

struct programs {
	char warden[PATH_MAX], execd[PATH_MAX], image[PATH_MAX], egress[PATH_MAX];
};

static int find_programs(const struct options *o, struct programs *p, struct supervisor_means *m,
			 struct err *e)
{
	struct err not_there = ERR_NONE;
	int r = find_program(o->warden, "opensandbox-warden", p->warden, e);

	if (r == 0)
		r = find_program(o->execd, "execd", p->execd, e);
	if (r == 0)
		r = find_program(o->image, "opensandbox-image", p->image, e);
	if (r < 0)
		return r;
	m->warden = p->warden;
	m->execd = p->execd;
	m->image = p->image;
	/* Only sandboxes with a network policy need it, and are refused without. */
	r = find_program(o->egress, "opensandbox-egress", p->egress, o->egress ? e : &not_there);
	if (r == 0)
		m->egress = p->egress;
	return o->egress ? r : 0;
}

static int prepare(const struct options *o, const struct config *c, struct supervisor_means *m,
		   struct programs *p, struct err *e)
{
	int r = find_programs(o, p, m, e);

	if (r == 0)
		r = privileges_find(c->user, &m->privileges, e);
	if (r == 0)
		r = state_dir_open(c->state_dir, m->privileges.uid, m->privileges.gid, &m->locks,
				   e);
	if (r == 0)
		r = open_certificate(c, &m->tls, e);
	if (r == 0)
		r = open_listener(c, &m->listen_fd, e);
	m->config = c;
	return r;
}

static int serve(const struct options *o)
{
	struct supervisor_means means = {.locks = {-1, -1}, .listen_fd = -1};
	struct programs programs;
	struct config config = {0};
	struct err e = ERR_NONE;
	int r, code = EXIT_FAILURE;

	if (geteuid() != 0) {
		log_line(LOG_ERROR,
			 "cannot start: the native runtime needs root to make sandboxes");
		return EXIT_FAILURE;
	}
	r = load(o, &config, &e);
	if (r == 0)
		r = prepare(o, &config, &means, &programs, &e);
	if (r == 0) {
		code = supervisor_run(&means);
	} else {
		log_line(LOG_ERROR, "cannot start", LOG_S("err", e.msg));
		state_dir_close(&means.locks);
		tls_files_free(means.tls);
	}
	config_done(&config);
	return code;
}

static int make_config(const struct options *o)
{
	osb_cleanup(mem_freep) char *path = NULL;
	struct err e = ERR_NONE;

	if (init_config(o, &path, &e) < 0) {
		fprintf(stderr, "opensandbox-server: %s\n", e.msg);
		return EXIT_FAILURE;
	}
	printf("wrote %s, with a fresh API key in it\n", path);
	return EXIT_SUCCESS;
}

static int print_reference(void)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(REFERENCE_MAX);

	if (config_write_reference(&text) < 0)
		return EXIT_FAILURE;
	return fwrite(buf_str(&text), text.len, 1, stdout) == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	struct err e = ERR_NONE;
	struct options o;

	protect_from_tracing();
	protect_descriptors();
	(void)umask(022);
	log_init("opensandbox-server", LOG_INFO, 2);
	if (options_parse(argc, argv, &o, &e) < 0) {
		fprintf(stderr, "opensandbox-server: %s\n", e.msg);
		return EXIT_USAGE;
	}
	switch (o.verb) {
	case OPTIONS_HELP:
		fputs(options_help, stdout);
		return EXIT_SUCCESS;
	case OPTIONS_VERSION:
		puts("opensandbox-server " OPENSANDBOX_VERSION);
		return EXIT_SUCCESS;
	case OPTIONS_INIT_CONFIG:
		return make_config(&o);
	case OPTIONS_CONFIG_REFERENCE:
		return print_reference();
	default:
		return serve(&o);
	}
}
