/*
 * sys/keyring.h - kernel keyrings.
 */
#pragma once

#include "base/macro.h"

struct err;

/* A new, empty session keyring; kernels without keyrings have nothing to separate. */
osb_must_check int keyring_join_new(struct err *e);
