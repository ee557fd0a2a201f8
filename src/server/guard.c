/*
 * server/guard.c - asks the environment, then the terminal.
 */
#include "server/guard.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/view.h"
#include "server/config.h"

#define KEY_VARIABLE	  "OPENSANDBOX_SERVER_API_KEY"
#define INSECURE_VARIABLE "OPENSANDBOX_INSECURE_SERVER"
#define ANSWER_MS	  30000

static void take_key_from_environment(struct config *c)
{
	const char *key = getenv(KEY_VARIABLE);

	if (!key)
		return;
	free(c->api_key);
	c->api_key = key[0] ? mem_strdup(key) : NULL;
	(void)unsetenv(KEY_VARIABLE);
}

static bool confirmed_on_terminal(void)
{
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
	char answer[16];
	ssize_t n;

	if (!isatty(STDIN_FILENO))
		return false;
	fprintf(stderr, "There is no API key: whoever reaches this server may use it.\n"
			"Type YES within 30 seconds to start it all the same: ");
	if (poll(&p, 1, ANSWER_MS) != 1)
		return false;
	n = read(STDIN_FILENO, answer, sizeof(answer));
	return n > 0 && view_is(view_mem(answer, (size_t)n), "YES\n");
}

int guard_api_key(struct config *c, struct err *e)
{
	const char *insecure = getenv(INSECURE_VARIABLE);

	take_key_from_environment(c);
	if (c->api_key)
		return 0;
	if ((insecure && strcmp(insecure, "YES") == 0) || confirmed_on_terminal()) {
		log_line(LOG_WARN, "there is no API key: whoever reaches this server may use it");
		return 0;
	}
	return err_set(e, -EPERM,
		       "there is no API key: set server.api_key or " KEY_VARIABLE
		       ", or " INSECURE_VARIABLE "=YES to be open to everybody");
}
