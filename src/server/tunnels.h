/*
 * server/tunnels.h - plain TCP to a port of a sandbox, over a connection that was HTTP.
 */
#pragma once

struct loop;
struct tunnels;

struct tunnels *tunnels_new(struct loop *l);
void tunnels_free(struct tunnels *all); /* accepts NULL; cuts them; the HTTP server was freed */
