/*
 * execd/pty_client.h - one WebSocket client of a terminal: its holder, who types, or a viewer.
 *
 * A slow holder slows the terminal down.  A slow viewer slows nobody: it skips what the ring has
 * lost meanwhile, which shows as a gap in the offsets.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "execd/pty.h"

struct app;
struct http_exchange;
struct pty;

/* All clients, also those that have left their terminal and say goodbye. */
struct pty_clients {
	struct list members;
	size_t n, max;
};

void pty_clients_init(struct pty_clients *all, size_t max);
void pty_clients_done(struct pty_clients *all); /* cuts them */

struct pty_attach {
	enum pty_mode mode; /* when the shell must be started */
	uint64_t since;	    /* replay from this offset */
	bool viewer;
	bool takeover;
};

/* Answers the exchange: 101 and the client lives on its own, or an error. */
void pty_client_attach(struct pty_clients *all, struct app *app, struct pty *p,
		       struct http_exchange *x, const struct pty_attach *how);
