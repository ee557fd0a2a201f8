/* check.h - what the programs of these tests share: a claim that does not hold ends them. */
#pragma once

#include <opensandbox/opensandbox.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static osb_error e;

#define CHECK(claim)                                                                               \
	do {                                                                                       \
		if (!(claim)) {                                                                    \
			fprintf(stderr, "%s:%d: %s\n  (%d %s: %s)\n", __FILE__, __LINE__, #claim,  \
				(int)e.code, osb_code_name(e.code), e.message);                    \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)
#define OK(call) CHECK((call) == 0)

static inline osb_client *connect_client(void)
{
	osb_client *c = NULL;

	OK(osb_client_new(NULL, &c, &e));
	return c;
}

static inline osb_sandbox *make_sandbox(osb_client *c)
{
	osb_create what = OSB_CREATE_INIT;
	osb_sandbox *s = NULL;

	what.image = "opensandbox/code-interpreter:latest";
	OK(osb_sandbox_create(c, &what, NULL, &s, &e));
	return s;
}

/* Collects output. */
struct text {
	char bytes[1 << 16];
	size_t n;
};

static inline int collect(void *arg, const char *bytes, size_t n)
{
	struct text *t = arg;

	if (t->n + n >= sizeof(t->bytes))
		return -1;
	memcpy(t->bytes + t->n, bytes, n + 1);
	t->n += n;
	return 0;
}

static inline void finish(osb_client *c, osb_sandbox *s)
{
	if (s)
		OK(osb_sandbox_kill(s, NULL, &e));
	osb_sandbox_free(s);
	osb_client_free(c);
}
