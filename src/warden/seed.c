/*
 * warden/seed.c - makes a box up to the point where only its id, its limits and its start file are
 * missing.
 */
#include "warden/seed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "box/cgroup.h"
#include "box/netslot.h"
#include "box/setup.h"
#include "box/volumes.h"
#include "codec/warden_mounts.h"
#include "net/loop.h"
#include "sys/clone.h"
#include "sys/proc.h"
#include "sys/seqpacket.h"
#include "sys/userns.h"
#include "warden/boxes.h"
#include "warden/create.h"
#include "warden/idranges.h"
#include "warden/kinds.h"
#include "warden/options.h"
#include "warden/paths.h"
#include "warden/police.h"
#include "warden/record.h"
#include "warden/small_root.h"
#include "warden/spares.h"
#include "warden/warden.h"
#include "warden/yards.h"

#define LISTEN_BACKLOG 1024
#define LOG_MAX_BYTES  "16777216"

/* After a failure the next try waits: a host that cannot make seeds is not asked all the time. */
#define RETRY_MS 1000

/* At once: the work of one is done by several processors, and some of it in turns. */
#define MAKING_MAX 4

/* Making one holds up what comes next: creates that follow each other closely go first. */
#define PAUSE_MS 2

/* Everything a box's first process needs, open. */
struct means {
	int dir_fd, listen_fd, start_fd, start_peer, log_fd, status_fd, userns_fd, netns_fd;
};

#define MEANS_NONE ((struct means){-1, -1, -1, -1, -1, -1, -1, -1})

static void means_done(struct means *m)
{
	int *fds[] = {&m->dir_fd, &m->listen_fd, &m->start_fd,	&m->start_peer,
		      &m->log_fd, &m->status_fd, &m->userns_fd, &m->netns_fd};

	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		*fds[i] = fd_close(*fds[i]);
}

static int make_dirs(struct warden *w, const char *name, int *ret_fd, struct err *e)
{
	static const struct {
		const char *name;
		mode_t mode;
		bool for_server;
	} dirs[] = {
		/* What a sandbox writes has root's ids on disk, setuid bits and all: nobody else
		 * may come near. */
		{PATHS_LAYERS, 0700, false},
		{PATHS_LAYERS "/upper", 0755, false},
		{PATHS_LAYERS "/work", 0755, false},
		{PATHS_LAYERS "/usr-upper", 0755, false},
		{PATHS_LAYERS "/usr-work", 0755, false},
		{"run", 0750, true},
		{"log", 0750, true},
	};
	osb_cleanup(fd_closep) int fd = -1;
	int r = yards_make_box(w, name, 0710, e);

	if (r < 0)
		return r;
	fd = openat(w->boxes_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "open boxes/%s: %m", name);
	if (fchown(fd, 0, w->server_gid) < 0)
		return err_set(e, -errno, "chown boxes/%s: %m", name);
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		if (mkdirat(fd, dirs[i].name, dirs[i].mode) < 0 ||
		    (dirs[i].for_server && fchownat(fd, dirs[i].name, 0, w->server_gid, 0) < 0))
			return err_set(e, -errno, "mkdir boxes/%s/%s: %m", name, dirs[i].name);
	*ret_fd = take_fd(fd);
	return 0;
}

/* A path through /proc/self/fd stays short, however deep the state directory lies. */
static int listen_for_execd(struct warden *w, int dir_fd, int *ret_fd, struct err *e)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	osb_cleanup(fd_closep) int fd = -1;

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_set(e, -errno, "socket: %m");
	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/run/execd.sock", dir_fd);
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, LISTEN_BACKLOG) < 0)
		return err_set(e, -errno, "listen on run/execd.sock: %m");
	if (fchownat(dir_fd, "run/execd.sock", 0, w->server_gid, 0) < 0 ||
	    fchmodat(dir_fd, "run/execd.sock", 0660, 0) < 0)
		return err_set(e, -errno, "hand run/execd.sock to the server: %m");
	*ret_fd = take_fd(fd);
	return 0;
}

static int open_for_execd(struct warden *w, int dir_fd, const char *path, int flags, int *ret_fd,
			  struct err *e)
{
	osb_cleanup(fd_closep) int fd = openat(dir_fd, path, O_CREAT | O_CLOEXEC | flags, 0640);

	if (fd < 0 || fchown(fd, 0, w->server_gid) < 0)
		return err_set(e, -errno, "create %s: %m", path);
	*ret_fd = take_fd(fd);
	return 0;
}

static int prepare(struct warden *w, struct box *b, struct means *m, struct err *e)
{
	int pair[2], r;

	r = make_dirs(w, b->name, &m->dir_fd, e);
	if (r == 0)
		r = listen_for_execd(w, m->dir_fd, &m->listen_fd, e);
	if (r == 0)
		r = open_for_execd(w, m->dir_fd, "log/entry.log", O_RDWR | O_APPEND, &m->log_fd, e);
	if (r == 0)
		r = open_for_execd(w, m->dir_fd, "log/status.json", O_RDWR, &m->status_fd, e);
	if (r == 0)
		r = seqpacket_pair(pair, e);
	if (r < 0)
		return r;
	m->start_fd = pair[0];
	m->start_peer = pair[1];
	r = idranges_take(w->ids, &b->id_index, e);
	if (r < 0)
		return r;
	r = userns_new(idranges_base(b->id_index), IDRANGES_SIZE, &m->userns_fd, e);
	if (r == 0)
		r = netslot_make(w->nets, b->kind->network != WARDEN_NET_NONE, &b->net_slot,
				 &m->netns_fd, e);
	if (r == 0 && b->kind->network == WARDEN_NET_POLICED)
		r = police_prepare(w, b, m->dir_fd, m->netns_fd, e);
	if (r == 0)
		r = spares_take(w, b->name, &b->cgroup, e);
	return r;
}

static int start(struct warden *w, struct box *b, struct means *m, struct err *e)
{
	static const char *const argv[] = {
		"execd",       "--init",   "--listen", "fd:3",	    "--start-fd",
		"4",	       "--log-fd", "5",	       "--log-max", LOG_MAX_BYTES,
		"--status-fd", "6",	   "--harden", NULL,
	};
	static const char *const env[] = {
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=/root",
		"LANG=C.UTF-8",
		NULL,
	};
	int fds[] = {m->listen_fd, m->start_peer, m->log_fd, m->status_fd};
	char writable[sizeof(PATHS_STATE "/boxes//" PATHS_LAYERS) + BOX_NAME_MAX];
	struct setup s = {
		.new_root = PATHS_NEW_ROOT,
		.images = PATHS_IMAGES,
		.usr = "/usr",
		.writable = writable,
		.host_base = b->kind->host_base,
		.layers = b->kind->layers,
		.layers_n = b->kind->layers_n,
		.volumes = b->kind->volumes,
		.volumes_n = b->kind->volumes_n,
		.volumes_dir = PATHS_VOLUMES,
		.hosts_dir = PATHS_HOSTS,
		.hosts = small_root_hosts(),
		.hosts_n = OPTIONS_HOST_PATHS_MAX,
		.parents_dir = PATHS_PARENTS,
		.mounted_dir = PATHS_MOUNTED,
		.shared = PATHS_SHARED,
		.userns_fd = m->userns_fd,
		.id_base = idranges_base(b->id_index),
		.netns_fd = m->netns_fd,
		.cgroup = b->cgroup,
		.cgroup_v1 = cgroups_shown(w->cgroups),
		.filter = w->filter,
		.exec_fd = w->execd_fd,
		.fds = fds,
		.fds_n = ARRAY_LEN(fds),
		.argv = argv,
		.env = env,
	};
	int r;

	/* A path, not our fd: the child may copy only mounts of its own namespace. */
	snprintf(writable, sizeof(writable), PATHS_STATE "/boxes/%s/" PATHS_LAYERS, b->name);
	r = setup_start(&s, &b->pid, &b->pidfd, &b->report_fd, e);
	if (r < 0)
		return r;
	b->is_child = b->is_ours = true;
	b->report_fd = clone_hide_fd(b->report_fd);
	return proc_start_time(b->pid, &b->start_time, e);
}

/* An object store answers when it likes, and a client has chosen it. */
static bool waits_for_store(const struct kind *k)
{
	for (size_t i = 0; i < k->volumes_n; i++)
		if (k->volumes[i].kind == WARDEN_VOLUME_MOUNTED)
			return true;
	return false;
}

/* Nobody waits for those that wait for a store: they are not counted. */
static void begin_making(struct warden *w, struct kind *k)
{
	k->making++;
	if (!waits_for_store(k))
		w->making_n++;
}

static void end_making(struct warden *w, struct kind *k)
{
	k->making--;
	if (!waits_for_store(k))
		w->making_n--;
}

static void reported(void *arg, int fd, unsigned events);

static int watch_report(struct box *b, struct err *e)
{
	int r = loop_fd_new(b->warden->loop, b->report_fd, reported, b, &b->report_watch, e);

	if (r == 0)
		loop_fd_want(b->report_watch, LOOP_READ);
	return r;
}

/* One that is ready, and lacks nothing but its volumes, gets them. */
static int begin_join(struct warden *w, struct box *b, struct kind *k, struct err *e)
{
	osb_cleanup(fd_closep) int userns = -1;
	struct setup s = {
		.volumes = k->volumes,
		.volumes_n = k->volumes_n,
		.volumes_dir = PATHS_VOLUMES,
		.hosts_dir = PATHS_HOSTS,
		.hosts = small_root_hosts(),
		.hosts_n = OPTIONS_HOST_PATHS_MAX,
		.parents_dir = PATHS_PARENTS,
		.mounted_dir = PATHS_MOUNTED,
		.id_base = idranges_base(b->id_index),
	};
	int r;

	box_unwatch(b);
	kind_unref(b->kind);
	b->kind = kind_ref(k);
	b->state = BOX_MAKING;
	list_remove(&b->link);
	r = userns_of(b->pid, &userns, e);
	s.userns_fd = userns;
	if (r == 0)
		r = volumes_join_start(&s, b->pidfd, &b->join_pidfd, &b->report_fd, e);
	if (r == 0)
		r = watch_report(b, e);
	if (r < 0) {
		box_destroy(b);
		return r;
	}
	b->join_pidfd = clone_hide_fd(b->join_pidfd);
	list_push_back(&w->boxes, &b->link);
	begin_making(w, k);
	return 0;
}

/* Begins to make one; it goes on by itself. */
static int begin(struct warden *w, struct kind *k, struct err *e)
{
	osb_cleanup(means_done) struct means m = MEANS_NONE;
	struct record record = {0};
	struct box *b = k->base ? seed_take(w, k->base) : NULL;
	int r;

	if (b)
		return begin_join(w, b, k, e);
	b = box_new(w, k);
	rand_hex(b->name);
	r = prepare(w, b, &m, e);
	if (r == 0) {
		record.id_index = b->id_index;
		record.net_slot = b->net_slot;
		snprintf(record.cgroup, sizeof(record.cgroup), "%s", cgroup_name(b->cgroup));
		r = record_write(m.dir_fd, &record, e);
	}
	if (r == 0)
		r = start(w, b, &m, e);
	if (r == 0)
		r = watch_report(b, e);
	if (r < 0) {
		box_destroy(b);
		return r;
	}
	b->start_fd = clone_hide_fd(take_fd(m.start_fd));
	list_push_back(&w->boxes, &b->link);
	begin_making(w, k);
	return 0;
}

static void failed(struct warden *w, struct kind *k, const struct err *e)
{
	bool told = create_refuse(w, k, e);

	kind_drop(k);
	if (told) {
		loop_task_post(w->refill); /* a seed may have been used up */
		return;
	}
	log_line(LOG_WARN, "cannot make a sandbox ahead, trying again", LOG_S("err", e->msg));
	loop_timer_start(w->refill_later, RETRY_MS);
}

/* Creates that wait have several made for them at once, in the order in which they came. */
static struct kind *next_kind(struct warden *w)
{
	if (w->making_n >= MAKING_MAX)
		return NULL;
	if (w->waiting_n > 0)
		return create_next_kind(w);
	/* Before it is listed, a seed could take ids or an address from a sandbox that still runs.
	 */
	if (!w->listed || w->making_n > 0)
		return NULL;
	if (w->host->ready < kind_seeds_wanted(w->host, w->seeds_wanted))
		return w->host;
	return kinds_hungry(w->kinds, w->seeds_wanted);
}

static bool is_wanted(const struct warden *w, const struct kind *k)
{
	return k == w->host || k->waiting > 0 || k->followed;
}

static void reported(void *arg, int fd, unsigned events)
{
	struct box *b = arg;
	struct warden *w = b->warden;
	struct err e = ERR_NONE;
	int r;

	(void)events;
	end_making(w, b->kind);
	r = b->join_pidfd < 0 ? setup_result(fd, &e) : volumes_join_result(fd, b->join_pidfd, &e);
	b->join_pidfd = fd_close(b->join_pidfd);
	loop_fd_free(take_ptr(b->report_watch));
	b->report_fd = fd_close(b->report_fd);
	if (r == 0)
		r = box_watch(b, &e);
	if (r < 0) {
		failed(w, b->kind, &e);
		box_destroy(b);
		return;
	}
	if (!is_wanted(w, b->kind)) {
		box_destroy(b);
		loop_task_post(w->refill);
		return;
	}
	b->state = BOX_SEED;
	list_remove(&b->link);
	list_push_front(&w->boxes, &b->link);
	b->kind->ready++;
	create_continue(w);
	if (next_kind(w))
		loop_task_post(w->refill);
}

struct box *seed_take(struct warden *w, struct kind *k)
{
	list_each_safe (it, next, &w->boxes) {
		struct box *b = list_entry(it, struct box, link);

		/* Seeds stand in front; the first running box ends the search. */
		if (b->state != BOX_SEED)
			break;
		if (b->kind == k) {
			k->ready--;
			loop_timer_start(w->refill_later, PAUSE_MS);
			return b;
		}
	}
	return NULL;
}

/* Seeds stand in front: one that is ending makes room. */
static void drop_ready(struct warden *w, struct box *b)
{
	b->kind->ready--;
	b->dropped = true;
	list_remove(&b->link);
	list_push_back(&w->boxes, &b->link);
	box_kill(b);
	loop_task_post(w->refill); /* others have its share now */
}

static void drop_unfinished(struct warden *w, struct box *b)
{
	end_making(w, b->kind);
	box_destroy(b);
	loop_task_post(w->refill);
}

void seed_drop(struct warden *w, struct kind *k)
{
	list_each_safe (it, next, &w->boxes) {
		struct box *b = list_entry(it, struct box, link);

		if (b->kind != k)
			continue;
		if (b->state == BOX_SEED)
			drop_ready(w, b);
		else if (b->state == BOX_MAKING && k->waiting == 0)
			drop_unfinished(w, b);
	}
}

void seed_await_dropped(struct warden *w)
{
	list_each_safe (it, next, &w->boxes) {
		struct box *b = list_entry(it, struct box, link);

		if (b->dropped)
			box_destroy(b);
	}
}

void seed_refill(struct warden *w)
{
	struct kind *k;

	while ((k = next_kind(w))) {
		struct err e = ERR_NONE;

		kind_ref(k);
		if (begin(w, k, &e) < 0) {
			failed(w, k, &e);
			kind_unref(k);
			return;
		}
		kind_unref(k);
	}
}
