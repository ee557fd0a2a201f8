/*
 * egress/sidecar.c - sockets and table of our own namespace, one box, its API on a port.
 */
#include "egress/sidecar.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/num.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "egress/api.h"
#include "egress/box.h"
#include "egress/egress.h"
#include "egress/policy_file.h"
#include "egress/settings.h"
#include "egress/vault_proxy.h"
#include "policy/net_table.h"
#include "sys/nflog.h"
#include "sys/nfset.h"
#include "sys/sock_diag.h"
#include "sys/tool.h"

#define DOCUMENT_MAX  (4u << 20)
#define AUTHORITY_MAX 16384
#define BACKLOG	      512

/* On loopback: only what the table leads here arrives. */
static int listen_inside(int type, uint16_t port, int *ret, struct err *e)
{
	osb_cleanup(fd_closep) int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_in a = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(port),
	};
	int on = 1;

	if (fd < 0)
		return err_set(e, -errno, "socket: %m");
	if (type == SOCK_STREAM && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
		return err_set(e, -errno, "socket: %m");
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    (type == SOCK_STREAM && listen(fd, BACKLOG) < 0))
		return err_set(e, -errno, "listen on 127.0.0.1:%u: %m", port);
	*ret = take_fd(fd);
	return 0;
}

static int open_sockets(const struct settings *s, int fds[RUNTIME_NET_FDS], struct err *e)
{
	int r = nfset_open(&fds[RUNTIME_NET_SETS], e);

	if (r == 0)
		r = nflog_open(&fds[RUNTIME_NET_LOG], e);
	if (r == 0)
		r = sock_diag_open(&fds[RUNTIME_NET_DIAG], e);
	if (r == 0)
		r = listen_inside(SOCK_DGRAM, NET_TABLE_DNS_PORT, &fds[RUNTIME_NET_DNS_UDP], e);
	if (r == 0)
		r = listen_inside(SOCK_STREAM, NET_TABLE_DNS_PORT, &fds[RUNTIME_NET_DNS_TCP], e);
	if (r == 0)
		r = listen_inside(SOCK_STREAM, (uint16_t)s->mitmproxy_port, &fds[RUNTIME_NET_HTTP],
				  e);
	return r;
}

static int load_table(const struct settings *s, struct err *e)
{
	static const char *const argv[] = {"nft", "-f", "-", NULL};
	const struct net_table_options o = {
		.dns_port = NET_TABLE_DNS_PORT,
		.http_port = (uint16_t)s->mitmproxy_port,
		.names_only = !settings_closed(s),
		.drop = strcmp(s->refuse, "drop") == 0,
		.marked = true,
	};
	osb_cleanup(buf_done) struct buf text = BUF_INIT(NET_TABLE_MAX_BYTES);
	char said[200];
	int r = net_table_write(&o, &text);

	if (r < 0)
		return err_set(e, r, "the table is too large");
	r = tool_run(argv, buf_view(&text), said, sizeof(said), e);
	if (r < 0)
		return err_ctx(e, "nft");
	return r == 0 ? 0 : err_set(e, -EIO, "nft failed: %s", said);
}

int sidecar_open(const struct settings *s, int ret_fds[RUNTIME_NET_FDS], struct err *e)
{
	int r;

	for (size_t i = 0; i < RUNTIME_NET_FDS; i++)
		ret_fds[i] = -1;
	r = open_sockets(s, ret_fds, e);
	if (r == 0)
		r = load_table(s, e);
	for (size_t i = 0; r < 0 && i < RUNTIME_NET_FDS; i++)
		ret_fds[i] = fd_close(ret_fds[i]);
	return r;
}

/* The file's policy goes before the environment's: it is what the last of us was told. */
static int find_policy(const struct settings *s, struct net_policy *ret, struct err *e)
{
	static const char *const sources[] = {
		[POLICY_FROM_FILE] = "file",
		[POLICY_FROM_RULES] = "environment",
		[POLICY_FROM_NOTHING] = "none, all is denied",
	};
	struct err wrong = ERR_NONE;
	enum policy_source source;
	int r = policy_file_load(s->policy_file, s->rules, ret, &source, &wrong, e);

	if (wrong.code)
		log_line(LOG_WARN, "ignoring a file that is no policy", LOG_S("err", wrong.msg));
	if (r < 0)
		return err_ctx(e, "the policy at the start");
	log_line(LOG_INFO, "policy loaded", LOG_S("from", sources[source]),
		 LOG_S("mode", net_policy_mode(ret)));
	return 0;
}

static int make_document(const struct settings *s, struct json **ret, struct err *e)
{
	osb_cleanup(net_policy_done) struct net_policy policy = NET_POLICY_NONE;
	osb_cleanup(buf_done) struct buf text = BUF_INIT(DOCUMENT_MAX);
	struct json_writer w;
	int r = find_policy(s, &policy, e);

	if (r < 0)
		return r;
	json_writer_init(&w, &text);
	json_write_object(&w);
	json_write_key(&w, "policy");
	net_policy_write(&policy, &w);
	json_put_cstr(&w, "token", s->token);
	json_put_bool(&w, "credentialProxy", s->mitmproxy_transparent);
	json_write_object_end(&w);
	if (json_writer_end(&w) < 0)
		return err_set(e, -E2BIG, "the policy at the start is too large");
	return json_parse(buf_view(&text), 0, ret, e);
}

/* ---- the API ---- */

/* "HOST:PORT", ":PORT", "[HOST]:PORT"; without a host everybody is heard. */
static int read_address(const char *text, struct sockaddr_in6 *ret, struct err *e)
{
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN + 8];
	const char *mapped = "::ffff:";
	struct view name = {text, colon ? (size_t)(colon - text) : 0};
	uint32_t port;

	*ret = (struct sockaddr_in6){.sin6_family = AF_INET6};
	if (!colon || !num_parse_u32(view_of(colon + 1), &port) || port > UINT16_MAX)
		return err_set(e, -EINVAL, SETTINGS_PREFIX "HTTP_ADDR needs a port: '%s'", text);
	ret->sin6_port = htons((uint16_t)port);
	if (name.len == 0)
		return 0;
	if (view_is(name, "localhost"))
		name = VIEW("127.0.0.1");
	if (view_starts(name, VIEW("[")) && view_ends(name, VIEW("]"))) {
		name = view_first(view_skip(name, 1), name.len - 2);
		mapped = "";
	}
	if (snprintf(host, sizeof(host), "%s" VIEW_FMT, mapped, VIEW_ARG(name)) <
		    (int)sizeof(host) &&
	    inet_pton(AF_INET6, host, &ret->sin6_addr) == 1)
		return 0;
	return err_set(e, -EINVAL, SETTINGS_PREFIX "HTTP_ADDR has no IP address: '%s'", text);
}

/* Both families at once; where there is no IPv6, the other one alone. */
static int listen_for_api(const char *address, int *ret, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	struct sockaddr_in6 both;
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	bool old;
	int on = 1, off = 0;
	int r = read_address(address, &both, e);

	if (r < 0)
		return r;
	fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	old = fd < 0;
	if (old)
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	v4.sin_port = both.sin6_port;
	memcpy(&v4.sin_addr, both.sin6_addr.s6_addr + 12, sizeof(v4.sin_addr));
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (fd < 0 ||
	    bind(fd, old ? (void *)&v4 : (void *)&both, old ? sizeof(v4) : sizeof(both)) < 0 ||
	    listen(fd, BACKLOG) < 0)
		return err_set(e, -errno, "listen on '%s': %m", address);
	*ret = take_fd(fd);
	return 0;
}

static const char *id_of(const struct settings *s)
{
	return s->sandbox_id[0] ? s->sandbox_id : "sandbox";
}

/* A new file in the place of whatever is there; its directory is made if it is missing. */
static int put_file(const char *path, struct view text, struct err *e)
{
	osb_cleanup(mem_freep) char *dir = mem_strdup(path);
	osb_cleanup(fd_closep) int fd = -1;
	char *slash = strrchr(dir, '/');

	if (slash && slash != dir) {
		*slash = '\0';
		/* If that fails, so does what follows. */
		if (mkdir(dir, 0755) == 0)
			(void)chmod(dir, 0755);
	}
	if (unlink(path) < 0 && errno != ENOENT)
		return err_set(e, -errno, "replace '%s': %m", path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return err_set(e, -errno, "make '%s': %m", path);
	/* Whatever our own mask says: programs of every user read it. */
	if (fchmod(fd, 0644) < 0 || write(fd, text.p, text.len) != (ssize_t)text.len)
		return err_set(e, -EIO, "write '%s'", path);
	return 0;
}

void sidecar_export(const struct settings *s, const unsigned char secret[32])
{
	osb_cleanup(buf_done) struct buf pem = BUF_INIT(AUTHORITY_MAX);
	struct err e = ERR_NONE;

	if (!s->mitmproxy_transparent || !s->mitmproxy_ca_file[0])
		return;
	if (vault_ca_certificate(secret, id_of(s), &pem, &e) < 0 ||
	    put_file(s->mitmproxy_ca_file, buf_view(&pem), &e) < 0)
		log_line(LOG_WARN, "nobody in the sandbox will trust the vault",
			 LOG_S("err", e.msg));
}

int sidecar_start(struct egress *g, const int fds[RUNTIME_NET_FDS], struct err *e)
{
	const char *id = id_of(g->settings);
	osb_cleanup(json_freep) struct json *document = NULL;
	struct box *b;
	int fd;
	int r = make_document(g->settings, &document, e);

	if (r < 0) {
		for (size_t i = 0; i < RUNTIME_NET_FDS; i++)
			fd_close(fds[i]);
		return r;
	}
	r = box_new(g, id, document, fds, &b, e);
	if (r < 0)
		return r;
	map_put(g->boxes, view_of(b->id), b);
	r = listen_for_api(g->settings->http_addr, &fd, e);
	return r < 0 ? r : api_new(g, fd, b, e);
}
