/*
 * execd/api_isolated.h - what the files of /v1/isolated share.
 */
#pragma once

struct app;
struct http_exchange;
struct isolated_session;

/* The session of the path; answers 503 or 404 itself and returns NULL when there is none. */
struct isolated_session *api_isolated_session(struct app *app, struct http_exchange *x);
