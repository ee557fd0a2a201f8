/*
 * runtime/runtime.h - what every kind of sandbox can do, as one table of operations.
 *
 * Each operation is asynchronous: it returns at once and calls back from the loop, exactly once,
 * also on failure.  The API layer knows only this table.  What a runtime cannot do is NULL in its
 * table, and its capabilities say so.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct err;
struct loop;
struct runtime;

struct runtime_limits {
	uint64_t memory_bytes, memory_low_bytes, cpu_milli, cpu_weight_milli, pids;
};

/* A directory that outlives the sandbox. */
struct runtime_volume {
	enum { RUNTIME_VOLUME_NAMED, RUNTIME_VOLUME_HOST, RUNTIME_VOLUME_MOUNTED } kind;
	uint64_t number;      /* of the volume; host: index into the allowed host paths */
	const char *sub_path; /* relative, "" = all of it; made if missing */
	const char *mount_path;
	bool read_only;
};

struct runtime_spec {
	const char *id;
	bool host_base;		/* the host image lies below the layers */
	const uint64_t *layers; /* numbers below images/layers, lowest first */
	size_t layers_n;
	const struct runtime_volume *volumes;
	size_t volumes_n;
	const char *hostname;
	struct runtime_limits limits;
	bool network;		/* outward NAT, else loopback only */
	bool policed;		/* closed from the start: see `netwatch` */
	struct view start_file; /* JSON for execd */
};

/* What must be remembered to find the sandbox again after a restart; the store keeps it. */
struct runtime_handle {
	int32_t pid;
	uint64_t start_time;
};

struct runtime_stats {
	uint64_t cpu_usec, memory_bytes, memory_peak_bytes, memory_limit_bytes, pids, oom_kills;
};

typedef void runtime_done_fn(void *arg, const struct err *e); /* e is NULL on success */
typedef void runtime_create_fn(void *arg, const struct runtime_handle *handle, const struct err *e);
typedef void runtime_connect_fn(void *arg, int fd, const struct err *e); /* fd is the callee's */
typedef void runtime_stats_fn(void *arg, const struct runtime_stats *stats, const struct err *e);

/*
 * What it takes to police a sandbox's network, made inside its namespace: sockets for nftables
 * (nfset), for its log (NFLOG), for lists of its connections (sock_diag); DNS over UDP and TCP,
 * HTTP for the vault.
 */
enum {
	RUNTIME_NET_SETS,
	RUNTIME_NET_LOG,
	RUNTIME_NET_DIAG,
	RUNTIME_NET_DNS_UDP,
	RUNTIME_NET_DNS_TCP,
	RUNTIME_NET_HTTP,
	RUNTIME_NET_FDS
};

typedef void runtime_netwatch_fn(void *arg, const int fds[RUNTIME_NET_FDS],
				 const struct err *e); /* fds are the callee's, or NULL */

/* News that nobody asked for. */
struct runtime_events {
	void (*ready)(void *arg); /* (re)connected: adopt what should be running, then adopt_end */
	void (*exited)(void *arg, const char *id, int status, bool oom); /* status -1 = unknown */
	void (*oom)(void *arg, const char *id);
};

struct runtime_ops {
	const char *name;
	void (*create)(struct runtime *r, const struct runtime_spec *spec, runtime_create_fn *fn,
		       void *arg);
	void (*kill)(struct runtime *r, const char *id, runtime_done_fn *fn, void *arg);
	void (*pause)(struct runtime *r, const char *id, runtime_done_fn *fn, void *arg);
	void (*resume)(struct runtime *r, const char *id, runtime_done_fn *fn, void *arg);
	void (*adopt)(struct runtime *r, const char *id, const struct runtime_handle *h,
		      runtime_done_fn *fn, void *arg); /* -ESRCH: it is gone */
	void (*adopt_end)(struct runtime *r, runtime_done_fn *fn, void *arg);
	void (*connect)(struct runtime *r, const char *id, uint16_t port, runtime_connect_fn *fn,
			void *arg);
	/* A connection to execd itself: queues in the kernel until execd accepts. */
	void (*connect_execd)(struct runtime *r, const char *id, runtime_connect_fn *fn, void *arg);
	void (*stats)(struct runtime *r, const char *id, runtime_stats_fn *fn, void *arg);
	/* The means to police a running sandbox; may be asked again.  One that was not created
	 * `policed` is from then on: its names are asked of whoever has the sockets, and it stays
	 * open until its sets are changed. */
	void (*netwatch)(struct runtime *r, const char *id, runtime_netwatch_fn *fn, void *arg);
	/* Before layers are removed: nothing is kept ready on them after the answer. */
	void (*forget_layers)(struct runtime *r, const uint64_t *layers, size_t n,
			      runtime_done_fn *fn, void *arg);
	void (*free)(struct runtime *r);
};

struct runtime {
	const struct runtime_ops *ops;
	unsigned capabilities;
	char missing[256]; /* guarantees this host does not give, in words; "" = all there */
};

/*
 * Which volume of the spec a create failed by, or -1.  The code then says why: -EXDEV and -ELOOP
 * are links that lead out of it, -EOPNOTSUPP is a file system that cannot map ids, the rest is what
 * opening, making or mounting the directory failed with; the text begins with "volumes[N]: ".
 */
int runtime_failed_volume(const struct err *e);

/*
 * The native runtime.  It has no warden at first: runtime_native_attach() gives it a connection
 * (taken), and a new one whenever the warden was started again.  `boxes_dir` is where the warden
 * keeps sandboxes (borrowed); the caller's current directory must be that directory, so that paths
 * of sockets stay short.
 *
 * Requests made while there is no warden wait for the next one; those that were under way when it
 * died are asked again of its successor, after `ready` and adopt_end.
 */
osb_must_check int runtime_native_new(struct loop *l, const struct runtime_events *events,
				      void *arg, struct runtime **ret, struct err *e);
void runtime_native_attach(struct runtime *r, int warden_fd);
