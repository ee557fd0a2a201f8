/*
 * ingress/main.c - opensandbox-ingress: a gateway to ports of sandboxes, in front of servers.
 *
 * What needs files, names or rights comes first; clients come after all of that is gone.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "ingress/keeper.h"
#include "ingress/names.h"
#include "ingress/options.h"
#include "ingress/upstreams.h"
#include "ingress/worker.h"
#include "net/tls_files.h"
#include "sys/protect.h"

#define EXIT_USAGE 2
#define BACKLOG	   4096

static int open_listener(const struct options *o, int *ret, struct err *e)
{
	struct sockaddr_storage a = {0};
	struct sockaddr_in *v4 = (struct sockaddr_in *)&a;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&a;
	osb_cleanup(fd_closep) int fd = -1;
	socklen_t len = sizeof(*v4);
	int on = 1;

	if (inet_pton(AF_INET, o->host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(o->port);
	} else if (inet_pton(AF_INET6, o->host, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(o->port);
		len = sizeof(*v6);
	} else {
		return err_set(e, -EINVAL, "--host takes an IP address, not '%s'", o->host);
	}
	fd = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&a, len) < 0 || listen(fd, BACKLOG) < 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		return err_set(e, -errno, "listen on %s port %u: %m", o->host, o->port);
	log_line(LOG_INFO, "listening", LOG_S("host", o->host),
		 LOG_I("port", ntohs(a.ss_family == AF_INET ? v4->sin_port : v6->sin6_port)));
	*ret = take_fd(fd);
	return 0;
}

static int open_certificate(const struct options *o, struct tls_files **ret, struct err *e)
{
	int r;

	if (!o->tls_cert)
		return 0;
	r = tls_files_new(o->tls_cert, o->tls_key, ret, e);
	if (r < 0)
		return err_ctx(e, "--tls-cert, --tls-key");
	if (tls_files_until(*ret) <= (int64_t)(clock_wall_ms() / 1000))
		log_line(LOG_WARN, "the certificate has expired; clients will refuse it",
			 LOG_S("certificate", o->tls_cert));
	return 0;
}

static int serve(const struct options *o)
{
	struct worker_means means = {.options = o, .listen_fd = -1, .tls_fd = -1, .keeper_fd = -1};
	char redis_ip[INET6_ADDRSTRLEN];
	struct tls_files *files = NULL;
	struct err e = ERR_NONE;
	int r, code = EXIT_FAILURE;

	if (o->namespace_given)
		log_line(LOG_WARN, "--namespace has no meaning here, ignoring it");
	if (!o->api_key)
		log_line(LOG_WARN, "there is no API key: only servers without one will answer");
	r = upstreams_new(&o->servers, o->server_ca, &means.upstreams, &e);
	if (r == 0 && o->renew) {
		r = names_look_up(o->redis.host, redis_ip, &e);
		means.redis_ip = redis_ip;
	}
	if (r == 0)
		r = open_certificate(o, &files, &e);
	if (r == 0)
		r = open_listener(o, &means.listen_fd, &e);
	if (r < 0) {
		log_line(LOG_ERROR, "cannot start", LOG_S("err", e.msg));
		upstreams_free(means.upstreams);
	} else if (files) {
		code = keeper_run(files, &means);
		upstreams_free(means.upstreams);
	} else {
		code = worker_run(&means);
	}
	tls_files_free(files);
	return code;
}

int main(int argc, char **argv)
{
	struct err e = ERR_NONE;
	struct options o;
	int code = EXIT_SUCCESS;

	protect_from_tracing();
	protect_descriptors();
	(void)umask(077);
	log_init("opensandbox-ingress", LOG_INFO, 2);
	if (options_parse(argc, argv, &o, &e) < 0) {
		fprintf(stderr, "opensandbox-ingress: %s\n", e.msg);
		return EXIT_USAGE;
	}
	log_set_level(o.level);
	if (o.help)
		fputs(options_help, stdout);
	else if (o.version)
		puts("opensandbox-ingress " OSB_VERSION);
	else
		code = serve(&o);
	options_done(&o);
	return code;
}
