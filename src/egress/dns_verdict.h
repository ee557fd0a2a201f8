/*
 * egress/dns_verdict.h - what a sandbox's policy says about names that it asks for, and about what
 * is answered.
 */
#pragma once

#include <stdbool.h>

#include "codec/dns.h"

struct box;
struct net_rule;

struct dns_verdict {
	bool allowed;
	bool passes; /* allowed, or the mode is lenient */
	const struct net_rule *rule;
	const char *why; /* instead of a rule, or NULL */
	bool answered;	 /* there is something of that name */
};

/* About the name that is asked for. */
struct dns_verdict dns_verdict_name(const struct box *b, const char *name);

/* About a name that stands for the one that was asked and that has the verdict `asked`: a denial
 * has to name it. */
struct dns_verdict dns_verdict_alias(const struct box *b, const struct dns_verdict *asked,
				     const char *alias);

/* About an address of a name that passes. */
struct dns_verdict dns_verdict_address(const struct box *b, const struct dns_address *a);

/* Servers of DNS over HTTPS or TLS, and names by which programs ask whether they may use some. */
bool dns_verdict_hides(const char *name);
