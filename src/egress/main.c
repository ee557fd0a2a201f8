/*
 * egress/main.c - decides what sandboxes may reach: beside a server for all of them, or alone for
 * the one whose network namespace it is in.
 *
 * Beside a server: descriptor 3 is the supervisor, 4 the socket on which the API is asked, 5 a
 * memory file with the secret that keys are derived from.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/rand.h"
#include "codec/json.h"
#include "egress/api.h"
#include "egress/confine.h"
#include "egress/control.h"
#include "egress/egress.h"
#include "egress/options.h"
#include "egress/settings.h"
#include "egress/sidecar.h"
#include "net/loop.h"

#define API_FD	  4
#define SECRET_FD 5

extern char **environ;

static void set_log_level(const struct settings *s)
{
	static const char *const names[LOG_LEVELS_] = {"error", "warn", "info", "debug"};

	for (int i = 0; i < LOG_LEVELS_; i++)
		if (strcmp(s->log_level, names[i]) == 0)
			log_set_level((enum log_level)i);
}

static int read_secret(unsigned char ret[32], struct err *e)
{
	ssize_t n = pread(SECRET_FD, ret, 32, 0);

	fd_close(SECRET_FD);
	if (n != 32)
		return err_set(e, n < 0 ? -errno : -EPROTO, "read the secret: %zd bytes", n);
	return 0;
}

static void stopped(void *arg, int signum)
{
	(void)signum;
	loop_stop(arg);
}

static int run_beside(struct egress *g, struct loop *l, const struct settings *s,
		      const struct options *o, struct err *e)
{
	unsigned char secret[32];
	int r = read_secret(secret, e);

	if (r == 0)
		r = confine(o, s, e);
	if (r == 0)
		r = egress_start(g, l, s, secret, e);
	explicit_bzero(secret, sizeof(secret));
	if (r == 0)
		r = api_new(g, API_FD, /* only= */ NULL, e);
	if (r == 0)
		r = control_new(g, o->supervisor_fd, &g->control, e);
	if (r < 0)
		return r;
	log_line(LOG_INFO, "ready for sandboxes");
	loop_run(l);
	return 0;
}

static int run_alone(struct egress *g, struct loop *l, const struct settings *s,
		     const struct options *o, struct err *e)
{
	int fds[RUNTIME_NET_FDS];
	unsigned char secret[32];
	int r = sidecar_open(s, fds, e);

	rand_bytes(secret, sizeof(secret));
	if (r == 0)
		sidecar_export(s, secret);
	if (r == 0)
		r = confine(o, s, e);
	if (r < 0)
		return r;
	g->alone = true;
	r = egress_start(g, l, s, secret, e);
	explicit_bzero(secret, sizeof(secret));
	if (r == 0)
		r = sidecar_start(g, fds, e);
	if (r < 0)
		return r;
	log_line(LOG_INFO, "the network is closed but for what the policy allows");
	loop_run(l);
	return 0;
}

static int run(const struct options *o, const struct settings *s, struct err *e)
{
	struct loop_signal *term = NULL, *interrupt = NULL;
	struct egress g = {0};
	struct loop *l;
	int r = loop_new(&l, e);

	if (r < 0)
		return r;
	r = loop_signal_new(l, SIGTERM, stopped, l, &term, e);
	if (r == 0)
		r = loop_signal_new(l, SIGINT, stopped, l, &interrupt, e);
	if (r == 0)
		r = o->supervisor_fd >= 0 ? run_beside(&g, l, s, o, e) : run_alone(&g, l, s, o, e);
	egress_stop(&g);
	loop_signal_free(term);
	loop_signal_free(interrupt);
	loop_free(l);
	return r;
}

int main(int argc, char **argv)
{
	osb_cleanup(settings_done) struct settings settings;
	struct err e = ERR_NONE;
	struct options o;
	int r;

	log_init("opensandbox-egress", LOG_INFO, 2);
	json_wipe_freed();
	settings_init(&settings);
	r = settings_from_environment(&settings, environ, &e);
	if (r == 0)
		r = options_parse(argc, argv, &o, &settings, &e);
	if (r < 0) {
		log_line(LOG_ERROR, "bad settings", LOG_S("err", e.msg));
		return 2;
	}
	if (o.help || o.version) {
		if (o.help)
			options_print_help();
		else
			printf("opensandbox-egress " OSB_VERSION "\n");
		return 0;
	}
	set_log_level(&settings);
	(void)umask(077);
	(void)signal(SIGPIPE, SIG_IGN);
	r = run(&o, &settings, &e);
	if (r < 0)
		log_line(LOG_ERROR, "egress cannot go on", LOG_S("err", e.msg));
	return r < 0 ? 1 : 0;
}
