/*
 * egress/sidecar.c - sockets and table of our own namespace, one box, its API on a port.
 */
#include "egress/sidecar.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/map.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "egress/box.h"
#include "egress/egress.h"
#include "egress/settings.h"
#include "policy/net_table.h"
#include "sys/nflog.h"
#include "sys/nfset.h"
#include "sys/sock_diag.h"
#include "sys/tool.h"

#define DOCUMENT_MAX (4u << 20)
#define BACKLOG	     512

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

static int make_document(const struct settings *s, struct json **ret, struct err *e)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(DOCUMENT_MAX);
	osb_cleanup(json_freep) struct json *rules = NULL;
	struct json_writer w;
	int r = 0;

	if (s->rules[0])
		r = json_parse(view_of(s->rules), 0, &rules, e);
	if (r < 0)
		return err_ctx(e, SETTINGS_PREFIX "RULES");
	json_writer_init(&w, &text);
	json_write_object(&w);
	json_write_key(&w, "policy");
	json_write_text(&w, s->rules[0] ? view_of(s->rules) : VIEW("null"));
	json_put_cstr(&w, "token", s->token);
	json_put_bool(&w, "credentialProxy", s->mitmproxy_transparent);
	json_write_object_end(&w);
	if (json_writer_end(&w) < 0)
		return err_set(e, -E2BIG, SETTINGS_PREFIX "RULES: too large");
	return json_parse(buf_view(&text), 0, ret, e);
}

int sidecar_start(struct egress *g, const int fds[RUNTIME_NET_FDS], struct err *e)
{
	const char *id = g->settings->sandbox_id[0] ? g->settings->sandbox_id : "sandbox";
	osb_cleanup(json_freep) struct json *document = NULL;
	struct box *b;
	int r = make_document(g->settings, &document, e);

	if (r < 0) {
		for (size_t i = 0; i < RUNTIME_NET_FDS; i++)
			fd_close(fds[i]);
		return r;
	}
	r = box_new(g, id, document, fds, &b, e);
	if (r == 0)
		map_put(g->boxes, view_of(b->id), b);
	return r;
}
