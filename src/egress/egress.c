/*
 * egress/egress.c - what all boxes share: made in order, ended in the other.
 */
#include "egress/egress.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/map.h"
#include "egress/box.h"
#include "egress/control.h"
#include "net/loop.h"
#include "policy/net_table.h"

static int open_boxes(struct egress *g, struct err *e)
{
	(void)e;
	g->boxes = map_new();
	return 0;
}

static void close_boxes(struct egress *g)
{
	struct view id;
	void *b;

	for (size_t pos = 0; g->boxes && map_next(g->boxes, &pos, &id, &b); pos = 0) {
		(void)map_remove(g->boxes, id);
		box_free(b);
	}
	map_free(take_ptr(g->boxes));
}

static const struct part {
	const char *name;
	int (*open)(struct egress *g, struct err *e);
	void (*close)(struct egress *g);
} parts[] = {
	{"boxes", open_boxes, close_boxes},
};

int egress_start(struct egress *g, struct loop *l, const struct settings *s,
		 const unsigned char secret[32], struct err *e)
{
	g->loop = l;
	g->settings = s;
	memcpy(g->secret, secret, sizeof(g->secret));
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (parts[i].open(g, e) < 0)
			return err_ctx(e, "%s", parts[i].name);
	return 0;
}

void egress_stop(struct egress *g)
{
	control_free(take_ptr(g->control));
	for (size_t i = ARRAY_LEN(parts); i-- > 0;)
		parts[i].close(g);
	explicit_bzero(g->secret, sizeof(g->secret));
}

int egress_mark(const struct egress *g, int fd, struct err *e)
{
	const int mark = NET_TABLE_MARK;

	if (g->alone && setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) < 0)
		return err_set(e, -errno, "mark a socket: %m");
	return 0;
}
