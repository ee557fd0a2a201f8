/*
 * codec/egress_msg.c - every message has the same size; what is checked is that its texts end.
 */
#include "codec/egress_msg.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/err.h"

void egress_msg_init(struct egress_msg *m, enum egress_kind kind, uint64_t serial, const char *id)
{
	memset(m, 0, sizeof(*m));
	m->magic = EGRESS_MAGIC;
	m->kind = (uint16_t)kind;
	m->size = (uint16_t)sizeof(*m);
	m->serial = serial;
	if (id)
		memcpy(m->id, id, strnlen(id, sizeof(m->id) - 1));
}

struct view egress_msg_view(const struct egress_msg *m)
{
	return view_mem(m, sizeof(*m));
}

static bool kind_known(unsigned kind)
{
	return (kind >= EGRESS_ADD && kind <= EGRESS_SAVED) ||
	       (kind >= EGRESS_HELLO && kind <= EGRESS_CHANGED);
}

/* It becomes a part of paths: letters, digits and dashes. */
static bool id_valid(const char *id)
{
	for (const char *p = id; *p; p++)
		if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
		      (*p >= '0' && *p <= '9') || *p == '-'))
			return false;
	return id[0] != '\0';
}

int egress_msg_parse(struct view datagram, struct egress_msg *ret, struct err *e)
{
	struct egress_msg m;

	if (datagram.len != sizeof(m))
		return err_set(e, -EPROTO, "egress message: %zu bytes", datagram.len);
	memcpy(&m, datagram.p, sizeof(m));
	if (m.magic != EGRESS_MAGIC || m.size != sizeof(m) || !kind_known(m.kind))
		return err_set(e, -EPROTO, "egress message: unknown kind %u", m.kind);
	if (!memchr(m.id, '\0', sizeof(m.id)) || !memchr(m.text, '\0', sizeof(m.text)))
		return err_set(e, -EPROTO, "egress message: unterminated text");
	if (m.kind == EGRESS_HELLO ? m.id[0] != '\0' : !id_valid(m.id))
		return err_set(e, -EPROTO, "egress message: malformed id");
	if (m.code > 0)
		return err_set(e, -EPROTO, "egress message: code %d", m.code);
	*ret = m;
	return 0;
}
