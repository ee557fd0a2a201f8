/*
 * net/http_adopt.h - connections of an HTTP server that somebody knows more about than the server.
 */
#pragma once

struct http_exchange;
struct http_server;

/*
 * A socket (taken) on which a client speaks HTTP in the clear.  `closed` is called exactly once,
 * when the server has done with the connection: at once if it has no room, after the `gone` of an
 * exchange, and when the connection is upgraded.
 */
void http_server_adopt_for(struct http_server *s, int fd, void *owner, void (*closed)(void *owner));

/* What the exchange's connection was adopted for; NULL if it was not. */
void *http_owner(const struct http_exchange *x);
