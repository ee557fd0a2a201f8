/*
 * cli/cmd_doctor.c - osb doctor: can this host run sandboxes, and if not, what is to be done?
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/view.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/show.h"
#include "codec/json_writer.h"

#define GIB (1024ull * 1024 * 1024)

enum verdict { FINE, WEAK, MISSING };

struct finding {
	enum verdict verdict;
	char detail[256];
	const char *advice; /* or NULL */
};

/* The beginning of a small file; "" = it is not there. */
static void read_start(const char *path, char ret[4096])
{
	osb_cleanup(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, ret, 4095);

	ret[n > 0 ? n : 0] = '\0';
}

static bool has_word(const char *path, const char *word)
{
	char text[4096];

	read_start(path, text);
	return strstr(text, word) != NULL;
}

static const char *find_program(const char *name)
{
	static const char *const places[] = {"/usr/sbin", "/usr/bin",	     "/sbin",
					     "/bin",	  "/usr/local/sbin", "/usr/local/bin"};
	static char path[128];

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		snprintf(path, sizeof(path), "%s/%s", places[i], name);
		if (access(path, X_OK) == 0)
			return path;
	}
	return NULL;
}

/* ---- one look each ---- */

static void look_at_user(struct finding *f)
{
	snprintf(f->detail, sizeof(f->detail), "user %u", (unsigned)geteuid());
	if (geteuid() == 0)
		return;
	f->verdict = WEAK;
	f->advice = "The server makes sandboxes as root: start it with sudo.";
}

static void look_at_kernel(struct finding *f)
{
	struct utsname u;
	unsigned major = 0, minor = 0;

	if (uname(&u) < 0)
		return;
	(void)sscanf(u.release, "%u.%u", &major, &minor);
	snprintf(f->detail, sizeof(f->detail), "%.60s %.60s", u.sysname, u.release);
	if (major > 5 || (major == 5 && minor >= 12))
		return;
	f->verdict = MISSING;
	f->advice = "Idmapped mounts need Linux 5.12 (for overlays 5.19): use a newer kernel.";
}

static void look_at_userns(struct finding *f)
{
	char text[4096];

	read_start("/proc/sys/user/max_user_namespaces", text);
	snprintf(f->detail, sizeof(f->detail), "at most %ld", strtol(text, NULL, 10));
	if (strtol(text, NULL, 10) >= 1024)
		return;
	f->verdict = MISSING;
	f->advice = "sysctl -w user.max_user_namespaces=65536";
}

static void look_at_overlay(struct finding *f)
{
	if (has_word("/proc/filesystems", "overlay"))
		return;
	f->verdict = MISSING;
	f->advice = "modprobe overlay";
}

static void look_at_cgroups(struct finding *f)
{
	static const char *const wanted[] = {"memory", "cpu", "pids"};
	char text[4096];
	bool unified;

	read_start("/sys/fs/cgroup/cgroup.controllers", text);
	unified = text[0] != '\0';
	snprintf(f->detail, sizeof(f->detail), "%s", unified ? "version 2" : "version 1");
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		char path[64];

		snprintf(path, sizeof(path), "/sys/fs/cgroup/%s", wanted[i]);
		if (unified ? strstr(text, wanted[i]) != NULL : access(path, F_OK) == 0)
			continue;
		f->verdict = WEAK;
		snprintf(f->detail + strlen(f->detail), sizeof(f->detail) - strlen(f->detail),
			 ", no %s", wanted[i]);
		f->advice = "Limits of what is missing do not hold: enable the controller at boot "
			    "(cgroup_enable=memory, systemd.unified_cgroup_hierarchy=1).";
	}
}

static void look_at_seccomp(struct finding *f)
{
	if (has_word("/proc/self/status", "Seccomp:"))
		return;
	f->verdict = MISSING;
	f->advice = "The kernel was built without CONFIG_SECCOMP_FILTER: use another.";
}

static void look_at_nft(struct finding *f)
{
	const char *path = find_program("nft");

	snprintf(f->detail, sizeof(f->detail), "%s", path ? path : "no nft");
	if (path)
		return;
	f->verdict = WEAK;
	f->advice = "Sandboxes have no network without it: apt-get install nftables";
}

static void look_at_forwarding(struct finding *f)
{
	if (has_word("/proc/sys/net/ipv4/ip_forward", "1"))
		return;
	f->verdict = WEAK;
	snprintf(f->detail, sizeof(f->detail), "off; the server switches it on");
}

static void look_at_disk(struct finding *f)
{
	struct statvfs fs;
	uint64_t bytes;

	if (statvfs("/var/lib", &fs) < 0)
		return;
	bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	snprintf(f->detail, sizeof(f->detail), "%.1f GiB free in /var/lib",
		 (double)bytes / (double)GIB);
	if (bytes >= 2 * GIB)
		return;
	f->verdict = WEAK;
	f->advice =
		"Images and what sandboxes write need room: native.state_dir may lie elsewhere.";
}

static const struct {
	const char *name;
	void (*look)(struct finding *f);
} checks[] = {
	{"root", look_at_user},
	{"kernel", look_at_kernel},
	{"user namespaces", look_at_userns},
	{"overlayfs", look_at_overlay},
	{"cgroups", look_at_cgroups},
	{"seccomp", look_at_seccomp},
	{"nft", look_at_nft},
	{"forwarding", look_at_forwarding},
	{"disk", look_at_disk},
};

int doctor(struct cli *c)
{
	static const char *const words[] = {[FINE] = "ok", [WEAK] = "weak", [MISSING] = "missing"};
	osb_cleanup(buf_done) struct buf json = BUF_INIT(CLI_JSON_MAX);
	enum verdict worst = FINE;
	struct json_writer w;
	int code;

	json_writer_init(&w, &json);
	json_write_array(&w);
	for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
		struct finding f = {.verdict = FINE};

		checks[i].look(&f);
		worst = MAX(worst, f.verdict);
		json_write_object(&w);
		json_put_cstr(&w, "check", checks[i].name);
		json_put_cstr(&w, "status", words[f.verdict]);
		json_put_cstr(&w, "detail", f.detail[0] ? f.detail : "there");
		put_text(&w, "advice", f.advice);
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	code = json_writer_end(&w) < 0
		       ? CLI_FAILED
		       : show_json(c, buf_view(&json), "check status detail advice");
	return code ? code : worst == MISSING ? CLI_FAILED : 0;
}
