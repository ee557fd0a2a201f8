/*
 * warden/record.h - what a later warden must know of a box: a small fixed file in its directory.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"

struct err;

struct record {
	uint32_t id_index;
	uint32_t net_slot;
	char cgroup[64]; /* its name below our parent */
};

osb_must_check int record_write(int box_fd, const struct record *r, struct err *e);
osb_must_check int record_read(int box_fd, struct record *ret, struct err *e);

/* Of a policed box, beside its record: where its network's filter listens, and what sort of table
 * leads there. */
struct record_ports {
	uint16_t dns, http;
	uint32_t sort;
};

osb_must_check int record_write_ports(int box_fd, const struct record_ports *p, struct err *e);
/* -ENOENT: it is not policed. */
osb_must_check int record_read_ports(int box_fd, struct record_ports *ret, struct err *e);
