/*
 * net/tls_front.h - TLS in front of an HTTP server: what its listeners accept shakes hands first,
 * and reaches it decrypted, with the client's address.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct http_server;
struct loop;
struct tls_front;
struct tls_server;

/* Both are borrowed and must live longer.  More than `max` connections at a time are closed at
 * once. */
struct tls_front *tls_front_new(struct loop *l, struct http_server *http, struct tls_server *tls,
				size_t max);

/* After the HTTP server was drained: calls done(arg) when what it said has left, or after
 * `grace_ms`. */
void tls_front_drain(struct tls_front *f, uint64_t grace_ms, void (*done)(void *arg), void *arg);

void tls_front_free(struct tls_front *f); /* accepts NULL; cuts all, after the HTTP server went */
