/*
 * execd/trust.h - makes the programs of a sandbox trust one more certificate authority.
 */
#pragma once

#include "base/view.h"

struct strv;

#define TRUST_FILE   "/opt/opensandbox/mitmproxy-ca-cert.pem"
#define TRUST_BUNDLE "/opt/opensandbox/ca-bundle.pem"

/*
 * Writes TRUST_FILE, adds `pem` to the bundles and Java keystores of the image that can be changed,
 * and sets the variables that programs look for authorities by, where `env` has no value of its
 * own.  What cannot be done is said on the log: a sandbox may do without.
 */
void trust_install(struct view pem, struct strv *env);
