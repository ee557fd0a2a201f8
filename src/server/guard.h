/*
 * server/guard.h - a server without a key is open to everybody: nobody starts one by accident.
 */
#pragma once

#include "base/macro.h"

struct config;
struct err;

/* Takes the key from the environment if it is there; without any key, -EPERM unless the operator
 * says that he means it. */
osb_must_check int guard_api_key(struct config *c, struct err *e);
