/*
 * box/harden.h - what the first process gives up before it becomes execd.
 */
#pragma once

#include "base/macro.h"

struct err;

osb_must_check int harden_rlimits(struct err *e); /* no core dumps, sane ceilings */
osb_must_check int harden_keyring(struct err *e); /* a session keyring of its own */
osb_must_check int
harden_capabilities(struct err *e); /* bounds and sets, inside the user namespace */
osb_must_check int harden_no_new_privs(struct err *e);
