/*
 * sys/nflog.c - nfnetlink_log: configuration messages out, packets in.
 */
#include "sys/nflog.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"

#define RECEIVE_BYTES 65536
#define CENTISECONDS  10u /* how long the kernel collects packets for one message */
#define KERNEL_BYTES  8192u
#define ATTEMPTS      16

struct config {
	_Alignas(8) char bytes[128];
	size_t len;
};

int nflog_open(int *ret, struct err *e)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_NETFILTER);

	if (fd < 0)
		return err_set(e, -errno, "open nfnetlink: %m");
	*ret = fd;
	return 0;
}

static void put(struct config *c, unsigned type, const void *value, size_t size)
{
	struct nlattr *a = (struct nlattr *)(c->bytes + c->len);

	a->nla_type = (uint16_t)type;
	a->nla_len = (uint16_t)(NLA_HDRLEN + size);
	memcpy(c->bytes + c->len + NLA_HDRLEN, value, size);
	c->len += NLA_ALIGN(NLA_HDRLEN + size);
}

static void begin(struct config *c, uint16_t group)
{
	struct nlmsghdr *h = (struct nlmsghdr *)c->bytes;
	struct nfgenmsg *g = NLMSG_DATA(h);

	memset(c->bytes, 0, sizeof(c->bytes));
	h->nlmsg_type = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG;
	h->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	g->nfgen_family = AF_UNSPEC;
	g->res_id = htons(group);
	c->len = NLMSG_LENGTH(sizeof(*g));
}

static void drain(int fd)
{
	_Alignas(8) char bytes[8192];

	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) >= 0 || errno == EINTR ||
	       errno == ENOBUFS)
		;
}

/* Packets may be there before the answer: they are passed over.  -EAGAIN: it found no room. */
static int read_answer(int fd)
{
	_Alignas(8) char answer[8192];

	for (;;) {
		const struct nlmsghdr *said = (struct nlmsghdr *)answer;
		ssize_t n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);

		if (n < 0 && (errno == EINTR || errno == ENOBUFS))
			continue;
		if (n < 0)
			return -errno;
		if ((size_t)n >= NLMSG_LENGTH(sizeof(struct nlmsgerr)) &&
		    said->nlmsg_type == NLMSG_ERROR)
			return ((const struct nlmsgerr *)NLMSG_DATA(said))->error;
	}
}

/* An earlier owner of the socket may have left it full, and more comes at any time. */
static int run(int fd, struct config *c)
{
	struct nlmsghdr *h = (struct nlmsghdr *)c->bytes;
	int r = -EAGAIN;

	h->nlmsg_len = (uint32_t)c->len;
	for (int i = 0; r == -EAGAIN && i < ATTEMPTS; i++) {
		drain(fd);
		if (send(fd, c->bytes, c->len, MSG_DONTWAIT) < 0)
			return -errno;
		r = read_answer(fd);
	}
	return r;
}

int nflog_bind(int fd, uint16_t group, uint32_t bytes, struct err *e)
{
	const struct nfulnl_msg_config_cmd bind = {.command = NFULNL_CFG_CMD_BIND};
	const struct nfulnl_msg_config_mode mode = {.copy_range = htonl(bytes),
						    .copy_mode = NFULNL_COPY_PACKET};
	const uint32_t timeout = htonl(CENTISECONDS), size = htonl(KERNEL_BYTES);
	struct config c;
	int r;

	begin(&c, group);
	put(&c, NFULA_CFG_CMD, &bind, sizeof(bind));
	r = run(fd, &c);
	if (r < 0 && r != -EBUSY)
		return err_set(e, r, "bind to log group %u: %s", group, strerror(-r));
	begin(&c, group);
	put(&c, NFULA_CFG_MODE, &mode, sizeof(mode));
	put(&c, NFULA_CFG_TIMEOUT, &timeout, sizeof(timeout));
	put(&c, NFULA_CFG_NLBUFSIZ, &size, sizeof(size));
	r = run(fd, &c);
	return r < 0 ? err_set(e, r, "set log group %u: %s", group, strerror(-r)) : 0;
}

/* Attributes that do not fit end the packet. */
static void parse(const struct nlmsghdr *h, struct nflog_packet *ret)
{
	size_t at = NLMSG_LENGTH(sizeof(struct nfgenmsg));
	const char *bytes = (const char *)h;

	*ret = (struct nflog_packet){.uid = -1};
	while (at + NLA_HDRLEN <= h->nlmsg_len) {
		struct nlattr a;
		struct view value;
		uint32_t uid;

		memcpy(&a, bytes + at, sizeof(a));
		if (a.nla_len < NLA_HDRLEN || a.nla_len > h->nlmsg_len - at)
			return;
		value = view_mem(bytes + at + NLA_HDRLEN, a.nla_len - (size_t)NLA_HDRLEN);
		switch (a.nla_type & NLA_TYPE_MASK) {
		case NFULA_PREFIX:
			ret->prefix = view_first(value, strnlen(value.p, value.len));
			break;
		case NFULA_PAYLOAD:
			ret->payload = value;
			break;
		case NFULA_UID:
			if (value.len == sizeof(uid)) {
				memcpy(&uid, value.p, sizeof(uid));
				ret->uid = ntohl(uid);
			}
			break;
		default:
			break;
		}
		at += NLA_ALIGN(a.nla_len);
	}
}

int nflog_read(int fd, nflog_fn *fn, void *arg)
{
	_Alignas(8) char message[RECEIVE_BYTES];
	struct nlmsghdr *h = (struct nlmsghdr *)message;
	ssize_t n;
	size_t left;

	do {
		n = recv(fd, message, sizeof(message), MSG_DONTWAIT);
	} while (n < 0 && (errno == EINTR || errno == ENOBUFS));
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	left = (size_t)n;
	for (; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
		struct nflog_packet p;

		if (h->nlmsg_type != (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET) ||
		    h->nlmsg_len < NLMSG_LENGTH(sizeof(struct nfgenmsg)))
			continue;
		parse(h, &p);
		fn(arg, &p);
	}
	return 1;
}
