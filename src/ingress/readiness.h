/*
 * ingress/readiness.h - do all servers answer?
 */
#pragma once

struct gate;
struct http_exchange;

/* Asks all of them, then answers OK or DEGRADED. */
void readiness_answer(struct http_exchange *x, const struct gate *g);
