/*
 * codec/warden_msg.h - what the server and the warden say to each other.
 *
 * One message is one SOCK_SEQPACKET datagram of a fixed layout per kind (little-endian, no
 * pointers), plus file descriptors for some.  Both ends run on one machine, but neither trusts
 * the other's lengths: warden_msg_parse() accepts a datagram only if its kind, its size and every
 * string in it are right.
 *
 * Requests carry a `serial` that the answer repeats.  Events carry serial 0.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct err;

#define WARDEN_MAGIC	  0x5357534fu /* "OSWS" */
#define WARDEN_ID_LEN	  36	      /* a UUID */
#define WARDEN_TEXT_MAX	  252
#define WARDEN_FORGET_MAX 24

enum warden_kind {
	/* server to warden */
	/* fds: [0] start file (memfd with JSON, read by execd alone), [1] mounts file
	 * (codec/warden_mounts.h), left out for the host image alone */
	WARDEN_CREATE = 1,
	WARDEN_KILL, /* kills everything in the sandbox; its cgroups, network and files go when that
			has ended, soon after the answer */
	WARDEN_FREEZE,
	WARDEN_THAW,
	WARDEN_STATS,
	WARDEN_CONNECT,	 /* the answer carries a connected stream socket to 127.0.0.1:port inside */
	WARDEN_ADOPT,	 /* id, pid, start time of a sandbox that ran before: watch it again */
	WARDEN_LIST_END, /* all ADOPTs were sent: whatever else is on disk or in the kernel is
			    removed */
	WARDEN_LIMITS,	 /* changes cpu, memory, pids of a running sandbox */
	WARDEN_FORGET_LAYERS, /* these are to be removed: nothing is kept ready on them any more */
	/* The answer carries what polices the network of a running sandbox (enum warden_netwatch).
	 * One that was not created policed has its names led to the sockets from now on, and stays
	 * open until its sets are changed. */
	WARDEN_NETWATCH,
	/* warden to server */
	WARDEN_HELLO = 64, /* capabilities; the first message after the warden started */
	WARDEN_OK,	   /* answer: done (create: pid, start time) */
	WARDEN_FAILED,	   /* answer: -errno and a sentence */
	WARDEN_STATS_OK,
	WARDEN_EXITED, /* event: id, wait status (or -1 when unknown), oom flag */
	WARDEN_OOM,    /* event: id, something inside was killed for memory */
};

/* Policed: as NAT, but closed until sets of its table (policy/net_table.h) are filled. */
enum warden_network { WARDEN_NET_NONE, WARDEN_NET_NAT, WARDEN_NET_POLICED };

/* Sockets that were made inside the sandbox's network namespace; none of them blocks. */
enum warden_netwatch {
	WARDEN_NETWATCH_SETS, /* nfnetlink, for sys/nfset.h */
	WARDEN_NETWATCH_LOG,  /* nfnetlink */
	WARDEN_NETWATCH_DIAG, /* sock_diag */
	WARDEN_NETWATCH_DNS_UDP,
	WARDEN_NETWATCH_DNS_TCP, /* listening */
	WARDEN_NETWATCH_HTTP,	 /* listening */
	WARDEN_NETWATCH_FDS,
};

struct warden_limits {
	uint64_t memory_bytes;	   /* 0 = none */
	uint64_t cpu_milli;	   /* thousandths of a core; 0 = none */
	uint64_t cpu_weight_milli; /* requests.cpu: share when the host is busy; 0 = default */
	uint64_t memory_low_bytes; /* requests.memory: protected; 0 = none */
	uint64_t pids;		   /* never 0 */
};

struct warden_msg {
	uint32_t magic;
	uint16_t kind;
	uint16_t size; /* of the whole message */
	uint64_t serial;
	char id[40]; /* NUL-terminated sandbox id; empty in HELLO, LIST_END, FORGET_LAYERS */
	union {
		struct {
			struct warden_limits limits;
			uint32_t network; /* enum warden_network */
			char hostname[64];
		} create;
		struct warden_limits limits;
		struct {
			uint32_t port;
		} connect;
		struct {
			uint32_t n; /* 0 = all there are */
			uint32_t pad;
			uint64_t layers[WARDEN_FORGET_MAX];
		} forget;
		struct {
			int32_t pid;
			uint32_t pad;
			uint64_t start_time; /* field 22 of /proc/PID/stat */
		} process;		     /* ADOPT, and OK of CREATE */
		struct {
			int32_t status;
			uint32_t oom;
		} exited;
		struct {
			uint64_t cpu_usec, memory_bytes, memory_peak_bytes, memory_limit_bytes,
				pids, oom_kills;
		} stats;
		struct {
			int32_t code; /* -errno */
			char text[WARDEN_TEXT_MAX];
		} failed;
		struct {
			uint32_t capabilities;	       /* enum warden_capability bits */
			char missing[WARDEN_TEXT_MAX]; /* what is not guaranteed on this host, in
							  words */
		} hello;
	};
};

enum warden_capability {
	WARDEN_CAN_NAT = 1,
	WARDEN_CAN_MEMORY = 2,
	WARDEN_CAN_CPU = 4,
	WARDEN_CAN_PIDS = 8,
	WARDEN_CAN_FREEZE = 16,
	WARDEN_CAN_CGROUP2 = 32,
	WARDEN_CAN_POLICE = 64,
};

/* Prepares a message of `kind`: zeroed, with magic and size. */
void warden_msg_init(struct warden_msg *m, enum warden_kind kind, uint64_t serial, const char *id);

/* Copies a datagram into *ret if it is well-formed; -EPROTO with a sentence otherwise. */
osb_must_check int warden_msg_parse(struct view datagram, struct warden_msg *ret, struct err *e);

/* The bytes to send. */
struct view warden_msg_view(const struct warden_msg *m);
