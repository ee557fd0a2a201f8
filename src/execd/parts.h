/*
 * execd/parts.h - the daemon's parts, made and ended in order.
 */
#pragma once

#include "base/macro.h"

struct app;
struct err;

osb_must_check int parts_start(struct app *app, struct err *e);
void parts_stop(struct app *app); /* also after a start that failed half-way */
