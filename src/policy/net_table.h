/*
 * policy/net_table.h - the nft table that lies in the network namespace of a policed sandbox.
 *
 * It is loaded once, as text, and never changed again: what a policy says is in its sets, and those
 * are changed as elements, in one transaction (sys/nfset.h).  With all sets empty everything but
 * loopback is closed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"

struct buf;

#define NET_TABLE	   "opensandbox" /* of family inet */
#define NET_TABLE_DNS_PORT 15353
#define NET_TABLE_HTTP	   18081
/* NFLOG group: first packets of flows, admitted ("a") or refused ("r"). */
#define NET_TABLE_LOG  5
#define NET_TABLE_MARK 1 /* packets of a filter that lives in the same namespace */

/* Each comes twice, with "4" or "6" behind its name. */
#define NET_SET_DENY  "deny"  /* intervals: refused */
#define NET_SET_ALLOW "allow" /* intervals: admitted */
#define NET_SET_DYNAMIC                                                                            \
	"dyn" /* with timeouts: addresses of names that were allowed and asked for */
#define NET_SET_ALL                                                                                \
	"all" /* intervals: admitted, if nothing else was said; all addresses or none              \
	       */
#define NET_SET_LENIENT "lenient" /* intervals: what would be refused passes, and is logged */
#define NET_SET_VAULT	"vault"	  /* with timeouts: ports 80 and 443 of these lead to the proxy */
#define NET_SET_DIVERT                                                                             \
	"divert" /* intervals: as vault, where addresses are admitted that no name led to */
#define NET_SET_DOH    "doh"	/* intervals: port 443 of these is refused, tcp and udp */
#define NET_SET_EXEMPT "exempt" /* intervals: name servers that may be asked past the filter */

struct net_table_options {
	uint16_t dns_port, http_port;
	bool names_only; /* mode "dns": nothing is closed, only port 53 is led to the filter */
	bool drop;   /* in silence; else with a reset or an ICMP message, so that programs fail fast
		      */
	bool marked; /* let packets with NET_TABLE_MARK pass: the filter is in here too */
	bool open;   /* `all` holds everything at first: for who is connected already */
};

#define NET_TABLE_MAX_BYTES 8192

/* For `nft -f -`; replaces a table that is there. */
osb_must_check int net_table_write(const struct net_table_options *o, struct buf *out);
