/*
 * server/supervisor_warden.c - starts `opensandbox-warden` with our socket as fd 3: what the
 * configuration says of sandboxes becomes its command line.
 */
#include "server/supervisor_warden.h"

#include <stdio.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/strv.h"
#include "server/config.h"
#include "server/egress_settings.h"
#include "server/supervisor.h"
#include "sys/spawn.h"

static void make_arguments(const struct supervisor_means *m, bool policing, struct strv *args)
{
	const struct config *c = m->config;
	char gid[16], seeds[24];
	const char *const pairs[][2] = {
		{"--supervisor-fd", "3"}, {"--state-dir", c->state_dir}, {"--execd", m->execd},
		{"--subnet", c->subnet},  {"--server-gid", gid},	 {"--seeds", seeds},
	};

	snprintf(gid, sizeof(gid), "%u", m->privileges.gid);
	snprintf(seeds, sizeof(seeds), "%lld", (long long)c->seeds);
	strv_add(args, "opensandbox-warden");
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		strv_add(args, pairs[i][0]);
		strv_add(args, pairs[i][1]);
	}
	for (size_t i = 0; i < c->allowed_host_paths.len; i++) {
		strv_add(args, "--host-path");
		strv_add(args, c->allowed_host_paths.v[i]);
	}
	if (!c->network)
		strv_add(args, "--no-network");
	if (!policing)
		strv_add(args, "--no-policing");
	if (egress_settings_names_only(c))
		strv_add(args, "--police-names-only");
	if (egress_settings_drop(c))
		strv_add(args, "--police-drop");
	if (log_enabled(LOG_DEBUG))
		strv_add(args, "--debug");
	else if (!log_enabled(LOG_INFO))
		strv_add(args, "--quiet");
}

/* The lock goes along: whoever comes after a killed supervisor waits for the warden's end. */
int supervisor_warden_start(const struct supervisor_means *m, bool policing, int fd, int lock,
			    pid_t *ret, struct err *e)
{
	osb_cleanup(strv_done) struct strv args = STRV_INIT, env = STRV_INIT;
	osb_cleanup(fd_closep) int pidfd = -1;
	int passed[] = {fd, lock};
	struct spawn spawned = {
		.path = m->warden,
		.fds = {-1, 2, 2},
		.extra_fds = passed,
		.extra_fds_n = ARRAY_LEN(passed),
		.flags = SPAWN_SESSION,
	};

	make_arguments(m, policing, &args);
	strv_add(&env, "PATH=/usr/sbin:/usr/bin:/sbin:/bin");
	spawned.argv = strv_args(&args);
	spawned.env = strv_args(&env);
	return spawn(&spawned, ret, &pidfd, e);
}
