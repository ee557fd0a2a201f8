/*
 * codec/warden_msg.c - fixed messages between the server and the warden.
 *
 * A table gives the payload size of every kind; a datagram of any other size is refused before a
 * field is looked at.
 */
#include "codec/warden_msg.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"

#define HEAD_SIZE  offsetof(struct warden_msg, create)
#define PAYLOAD(f) (sizeof(((struct warden_msg *)NULL)->f))
#define NO_PAYLOAD 0

/* -1: no such kind. */
static int payload_size(unsigned kind)
{
	switch (kind) {
	case WARDEN_CREATE:
		return (int)PAYLOAD(create);
	case WARDEN_LIMITS:
		return (int)PAYLOAD(limits);
	case WARDEN_CONNECT:
		return (int)PAYLOAD(connect);
	case WARDEN_FORGET_LAYERS:
		return (int)PAYLOAD(forget);
	case WARDEN_ADOPT:
	case WARDEN_OK:
		return (int)PAYLOAD(process);
	case WARDEN_EXITED:
		return (int)PAYLOAD(exited);
	case WARDEN_STATS_OK:
		return (int)PAYLOAD(stats);
	case WARDEN_FAILED:
		return (int)PAYLOAD(failed);
	case WARDEN_HELLO:
		return (int)PAYLOAD(hello);
	case WARDEN_KILL:
	case WARDEN_FREEZE:
	case WARDEN_THAW:
	case WARDEN_STATS:
	case WARDEN_LIST_END:
	case WARDEN_NETWATCH:
	case WARDEN_OOM:
		return NO_PAYLOAD;
	default:
		return -1;
	}
}

void warden_msg_init(struct warden_msg *m, enum warden_kind kind, uint64_t serial, const char *id)
{
	memset(m, 0, sizeof(*m));
	m->magic = WARDEN_MAGIC;
	m->kind = (uint16_t)kind;
	m->size = (uint16_t)(HEAD_SIZE + (size_t)payload_size(kind));
	m->serial = serial;
	if (id)
		memcpy(m->id, id, strnlen(id, sizeof(m->id) - 1));
}

struct view warden_msg_view(const struct warden_msg *m)
{
	return view_mem(m, m->size);
}

static bool terminated(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

/* A UUID in lower case: what becomes the name of a directory and of cgroups. */
static bool id_valid(const char *id)
{
	if (strlen(id) != WARDEN_ID_LEN)
		return false;
	for (int i = 0; i < WARDEN_ID_LEN; i++) {
		char c = id[i];

		if (i == 8 || i == 13 || i == 18 || i == 23) {
			if (c != '-')
				return false;
		} else if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
			return false;
		}
	}
	return true;
}

static bool without_id(unsigned kind)
{
	return kind == WARDEN_HELLO || kind == WARDEN_LIST_END || kind == WARDEN_FORGET_LAYERS;
}

static int check_strings(const struct warden_msg *m, struct err *e)
{
	if (!terminated(m->id, sizeof(m->id)))
		return err_set(e, -EPROTO, "warden message: unterminated id");
	if (m->id[0] != '\0' && (without_id(m->kind) || !id_valid(m->id)))
		return err_set(e, -EPROTO, "warden message: malformed id");
	if (m->id[0] == '\0' && m->kind < WARDEN_HELLO && !without_id(m->kind))
		return err_set(e, -EPROTO, "warden message: a request without an id");
	if (m->kind == WARDEN_CREATE && !terminated(m->create.hostname, sizeof(m->create.hostname)))
		return err_set(e, -EPROTO, "warden message: unterminated hostname");
	if (m->kind == WARDEN_FAILED && !terminated(m->failed.text, sizeof(m->failed.text)))
		return err_set(e, -EPROTO, "warden message: unterminated text");
	if (m->kind == WARDEN_HELLO && !terminated(m->hello.missing, sizeof(m->hello.missing)))
		return err_set(e, -EPROTO, "warden message: unterminated text");
	return 0;
}

static int check_numbers(const struct warden_msg *m, struct err *e)
{
	if (m->kind == WARDEN_CREATE && m->create.network > WARDEN_NET_POLICED)
		return err_set(e, -EPROTO, "warden message: unknown network %u", m->create.network);
	if (m->kind == WARDEN_CREATE && m->create.limits.pids == 0)
		return err_set(e, -EPROTO, "warden message: no limit of processes");
	if (m->kind == WARDEN_CONNECT && (m->connect.port == 0 || m->connect.port > 65535))
		return err_set(e, -EPROTO, "warden message: port %u", m->connect.port);
	if (m->kind == WARDEN_FORGET_LAYERS && m->forget.n > WARDEN_FORGET_MAX)
		return err_set(e, -EPROTO, "warden message: %u layers", m->forget.n);
	if (m->kind == WARDEN_ADOPT && m->process.pid <= 0)
		return err_set(e, -EPROTO, "warden message: pid %d", m->process.pid);
	return 0;
}

int warden_msg_parse(struct view datagram, struct warden_msg *ret, struct err *e)
{
	struct warden_msg m;
	int payload, r;

	if (datagram.len < HEAD_SIZE || datagram.len > sizeof(m))
		return err_set(e, -EPROTO, "warden message: %zu bytes", datagram.len);
	memset(&m, 0, sizeof(m));
	memcpy(&m, datagram.p, datagram.len);

	payload = payload_size(m.kind);
	if (m.magic != WARDEN_MAGIC || payload < 0)
		return err_set(e, -EPROTO, "warden message: unknown kind %u", m.kind);
	if (m.size != datagram.len || datagram.len != HEAD_SIZE + (size_t)payload)
		return err_set(e, -EPROTO, "warden message: kind %u with %zu bytes", m.kind,
			       datagram.len);
	r = check_strings(&m, e);
	if (r == 0)
		r = check_numbers(&m, e);
	if (r < 0)
		return r;
	*ret = m;
	return 0;
}
