/*
 * sdk/sandbox_int.h - a sandbox's handle, and requests about it.
 */
#pragma once

#include <opensandbox/sandbox.h>
#include <pthread.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/macro.h"
#include "sdk/asking.h"
#include "sdk/document.h"

struct json;
struct place;

struct osb_sandbox {
	osb_client *client;
	char *id;
	pthread_mutex_t lock;	     /* of what follows */
	struct place *exec, *egress; /* NULL = not asked yet */
};

/* A request about it: "/sandboxes/<id>" and `rest`. */
void sandbox_asking(osb_sandbox *s, const char *method, const char *rest, struct asking *ret);

/* From an object of the server's; what it points to is the document's. */
void sandbox_info_read(struct document *d, const struct json *v, osb_sandbox_info *ret);
