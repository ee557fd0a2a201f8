/*
 * image/host_java.h - the settings of Debian's JDKs, which their files in /usr are links to.
 */
#pragma once

#include "base/macro.h"

struct err;
struct sha256;

/* Copies /etc/java-*-openjdk, as far as it is what the package brought: no passwords, no keys. */
osb_must_check int host_java_copy(int root_fd, struct err *e);
void host_java_stamp(struct sha256 *s);
