/*
 * codec/egress_msg.h - what the server's worker and opensandbox-egress say to each other.
 *
 * One message is one SOCK_SEQPACKET datagram of a fixed layout plus file descriptors.  Whatever has
 * no fixed size is a document: JSON in a memfd, always the first descriptor.
 *
 * A document describes a sandbox: {"policy": {...}, "token": "...", "credentialProxy": bool,
 * "vault": {...} or absent, "vaultHosts": [...] or absent, "settings": {...} or absent}.
 * `settings` are the request's OPENSANDBOX_EGRESS_* variables.  The worker passes `vault` back as
 * it got it, and keeps it in memory alone; the names of its hosts are in the sandbox's record.
 * Where there are hosts and no vault, it was lost, and they are closed.
 *
 * Every connection begins with what egress has: a CHANGED for each of its boxes, then HELLO.  A
 * worker that was started again learns of vaults that way; it gives what is missing or different
 * with ADD, and takes away with REMOVE what it does not know.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct err;

#define EGRESS_MAGIC	    0x4557534fu /* "OSWE" */
#define EGRESS_TEXT_MAX	    252
#define EGRESS_DOCUMENT_MAX (4u << 20)

enum egress_kind {
	/* worker to egress */
	EGRESS_ADD =
		1, /* fds: document, then those of a NETWATCH in its order; replaces what it has */
	EGRESS_REMOVE,
	EGRESS_CA,    /* OK carries the certificate of the sandbox's CA as a document (PEM) */
	EGRESS_SAVED, /* answer to CHANGED: code 0 or -errno */
	/* egress to worker */
	EGRESS_HELLO = 64, /* once per connection: all that it has was told before */
	EGRESS_OK,
	EGRESS_FAILED,
	EGRESS_CHANGED, /* fds: document.  The change holds when the worker says SAVED with 0 */
};

struct egress_msg {
	uint32_t magic;
	uint16_t kind;
	uint16_t size;	 /* of the whole message */
	uint64_t serial; /* of the request, repeated by its answer; both sides count their own */
	char id[40];	 /* NUL-terminated; empty in HELLO */
	int32_t code;	 /* FAILED, SAVED: -errno */
	char text[EGRESS_TEXT_MAX];
};

void egress_msg_init(struct egress_msg *m, enum egress_kind kind, uint64_t serial, const char *id);
osb_must_check int egress_msg_parse(struct view datagram, struct egress_msg *ret, struct err *e);
struct view egress_msg_view(const struct egress_msg *m);
