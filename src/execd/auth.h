/*
 * execd/auth.h - may this request pass?
 */
#pragma once

#include <stdbool.h>

struct app;
struct http_exchange;

#define AUTH_HEADER "X-EXECD-ACCESS-TOKEN"

/* False when it may not, and the 401 was answered.  /ping and /ready are open to everybody. */
bool auth_check(struct app *app, struct http_exchange *x);
