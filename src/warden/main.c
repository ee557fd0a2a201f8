/*
 * warden/main.c - the privileged half of the native runtime.
 *
 * Holds root's rights and parses nothing but fixed messages: makes, freezes, reaches and ends
 * sandboxes for the server. Started by the supervisor, which passes a socket over which the
 * server's connections come.  It may be killed at any time: sandboxes run on, and the next warden
 * adopts them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "box/cgroup.h"
#include "box/filter.h"
#include "box/netslot.h"
#include "box/shared.h"
#include "codec/resolv.h"
#include "codec/sha256.h"
#include "image/host.h"
#include "net/loop.h"
#include "sys/memfd.h"
#include "sys/protect.h"
#include "warden/boxes.h"
#include "warden/doomed.h"
#include "warden/idranges.h"
#include "warden/kinds.h"
#include "warden/options.h"
#include "warden/paths.h"
#include "warden/police.h"
#include "warden/seed.h"
#include "warden/serve.h"
#include "warden/small_root.h"
#include "warden/spares.h"
#include "warden/trash.h"
#include "warden/warden.h"
#include "warden/yards.h"

#define FDS_WANTED (1 << 18)

/* Of what ended sandboxes leave that is as new, for whoever wants sandboxes to be made ahead. */
#define SPARES_PER_SEED 8u
#define SPARES_MAX	64u

/* Several descriptors per sandbox. */
static void allow_descriptors(void)
{
	struct rlimit l = {FDS_WANTED, FDS_WANTED};

	if (setrlimit(RLIMIT_NOFILE, &l) == 0 || getrlimit(RLIMIT_NOFILE, &l) < 0)
		return;
	l.rlim_cur = l.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &l);
}

static int open_dir(const char *path, mode_t mode, int *ret, struct err *e)
{
	if (mkdir(path, mode) < 0 && errno != EEXIST)
		return err_set(e, -errno, "mkdir %s: %m", path);
	*ret = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *ret < 0 ? err_set(e, -errno, "open %s: %m", path) : 0;
}

static int open_dirs(struct warden *w, struct err *e)
{
	int r = open_dir(PATHS_STATE "/boxes", 0710, &w->boxes_fd, e);

	if (r == 0 && fchown(w->boxes_fd, 0, w->server_gid) < 0)
		r = err_set(e, -errno, "chown boxes: %m");
	if (r == 0)
		r = open_dir(PATHS_STATE "/trash", 0700, &w->trash_fd, e);
	w->own_net_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	w->own_uts_fd = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);
	if (r == 0 && (w->own_net_fd < 0 || w->own_uts_fd < 0))
		r = err_set(e, -errno, "open our namespaces: %m");
	return r;
}

/* Two servers on one host keep apart by the state directory they use. */
static void make_tag(const char *state_dir, char ret[9])
{
	unsigned char digest[32];
	struct stat st;
	char text[64];
	int n = 0;

	if (stat(state_dir, &st) == 0)
		n = snprintf(text, sizeof(text), "%ju:%ju", (uintmax_t)st.st_dev,
			     (uintmax_t)st.st_ino);
	sha256_of(view_mem(text, (size_t)n), digest);
	for (int i = 0; i < 4; i++)
		snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}

/* It is looked at, not removed and made again: the server works in it. */
static bool no_boxes(const char *state_dir)
{
	char path[PATH_MAX];
	struct dirent *entry;
	bool none = true;
	DIR *d;

	snprintf(path, sizeof(path), "%s/boxes", state_dir);
	d = opendir(path);
	while (d && none && (entry = readdir(d)))
		none = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
	if (d)
		closedir(d);
	return none;
}

/* While the host's own /etc is still in sight. */
static int refresh_image(const char *state_dir, const struct resolv_conf *dns, struct err *e)
{
	static const char *const dirs[] = {"volumes", "images", "images/layers", "images/host"};
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		snprintf(path, sizeof(path), "%s/%s", state_dir, dirs[i]);
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return err_set(e, -errno, "mkdir %s: %m", path);
	}
	if (no_boxes(state_dir))
		host_image_prune(path);
	return host_image_refresh(path, dns, e);
}

static int open_means(struct warden *w, const struct options *o, struct err *e)
{
	struct resolv_conf dns;
	char tag[9];
	int r;

	make_tag(o->state_dir, tag);
	host_image_dns(&dns);
	r = memfd_copy("execd", o->execd, &w->execd_fd, e);
	if (r == 0)
		r = refresh_image(o->state_dir, &dns, e);
	if (r == 0)
		r = small_root_enter(o, e);
	if (r == 0)
		r = open_dirs(w, e);
	if (r == 0)
		r = filter_new(&w->filter, e);
	if (r == 0)
		r = cgroups_open(PATHS_CGROUP, tag, &w->cgroups, e);
	if (r == 0)
		r = shared_make(PATHS_SHARED, w->cgroups, e);
	if (r == 0)
		r = netslots_new(tag, o->network ? o->subnet : NULL, &dns, &w->nets, e);
	if (r == 0)
		w->police = police_new(w, o);
	return r;
}

static void refill(void *arg)
{
	seed_refill(arg);
}

static void drop_seeds(void *arg, struct kind *k)
{
	seed_drop(arg, k);
}

static void stopped(void *arg, int signum)
{
	(void)signum;
	loop_stop(((struct warden *)arg)->loop);
}

static int start(struct warden *w, const struct options *o, struct err *e)
{
	int r;

	list_init(&w->boxes);
	list_init(&w->doomed);
	list_init(&w->spares);
	list_init(&w->waiting);
	w->by_id = map_new();
	w->ids = idranges_new();
	w->seeds_wanted = o->seeds;
	w->spares_max = MIN(o->seeds * SPARES_PER_SEED, SPARES_MAX);
	netslots_keep(w->nets, w->spares_max);
	w->kinds = kinds_new(w->loop, drop_seeds, w);
	w->host = kinds_host(w->kinds, netslots_nat(w->nets) ? WARDEN_NET_NAT : WARDEN_NET_NONE);
	w->refill = loop_task_new(w->loop, refill, w);
	w->refill_later = loop_timer_new(w->loop, refill, w);
	w->doomed_timer = loop_timer_new(w->loop, doomed_retry, w);
	r = trash_new(w, &w->trash, e);
	if (r == 0)
		r = yards_open(w, e);
	return r < 0 ? r : serve_start(w, e);
}

/* Seeds end with us; sandboxes stay. */
static void finish(struct warden *w)
{
	serve_stop(w);
	list_each_safe (it, next, &w->boxes) {
		struct box *b = list_entry(it, struct box, link);

		if (b->state == BOX_SEED || b->state == BOX_MAKING || b->state == BOX_ENDING)
			box_destroy(b);
		else
			box_forget(b);
	}
	spares_drop(w);
	doomed_finish(w);
	trash_free(w->trash);
	loop_task_free(w->refill);
	loop_timer_free(w->refill_later);
	loop_timer_free(w->doomed_timer);
	netslots_remove(w->nets);
	netslots_free(w->nets);
	police_free(w->police);
	cgroups_remove_parents(w->cgroups);
	cgroups_free(w->cgroups);
	filter_free(w->filter);
	kind_unref(w->host);
	kinds_free(w->kinds);
	map_free(w->by_id);
	idranges_free(w->ids);
}

int main(int argc, char **argv)
{
	struct warden w = {
		.execd_fd = -1,
		.own_net_fd = -1,
		.own_uts_fd = -1,
		.boxes_fd = -1,
		.trash_fd = -1,
		.yards_fd = -1,
		.supervisor_fd = -1,
		.control_fd = -1,
	};
	struct loop_signal *term = NULL, *interrupt = NULL;
	struct err e = ERR_NONE;
	struct options o;
	int r;

	log_init("opensandbox-warden", LOG_INFO, 2);
	r = options_parse(argc, argv, &o, &e);
	if (r < 0) {
		log_line(LOG_ERROR, "bad command line", LOG_S("err", e.msg));
		return 2;
	}
	log_set_level(o.log_level);
	(void)umask(022);
	protect_from_tracing();
	allow_descriptors();
	w.supervisor_fd = o.supervisor_fd;
	w.server_gid = o.server_gid;
	w.state_dir = o.state_dir;
	/* The handlers come first: a SIGTERM during the start must not leave half of it behind. */
	r = loop_new(&w.loop, &e);
	if (r == 0)
		r = loop_signal_new(w.loop, SIGTERM, stopped, &w, &term, &e);
	if (r == 0)
		r = loop_signal_new(w.loop, SIGINT, stopped, &w, &interrupt, &e);
	if (r == 0)
		r = open_means(&w, &o, &e);
	if (r == 0)
		r = start(&w, &o, &e);
	if (r < 0) {
		log_line(LOG_ERROR, "the warden cannot start", LOG_S("err", e.msg));
		return 1;
	}
	log_line(LOG_INFO, "the warden is ready", LOG_I("seeds", w.seeds_wanted));
	loop_run(w.loop);
	finish(&w);
	loop_signal_free(term);
	loop_signal_free(interrupt);
	loop_free(w.loop);
	return 0;
}
