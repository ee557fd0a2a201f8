/*
 * mcp/embedded.c - see embedded.h.
 */
#include "mcp/embedded.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <opensandbox/opensandbox.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/strv.h"
#include "codec/json_writer.h"
#include "sys/spawn.h"

#define SERVER	      "opensandbox-server"
#define START_MS      60000
#define STOP_MS	      20000
#define LOOK_MS	      20
#define NETWORK_FIRST 214 /* 10.214.0.0/16 and those behind it */
#define NETWORKS      40
#define ROUTES_MAX    (4u << 20)

struct embedded {
	char *dir, *domain;
	char key[RAND_HEX_LEN + 1];
	osb_client *client;
	pid_t pid;
	int pidfd;
};

const char *embedded_domain(const struct embedded *s)
{
	return s->domain;
}

const char *embedded_key(const struct embedded *s)
{
	return s->key;
}

/* ---- what it needs ---- */

/* Beside this program; the caller's. */
static char *find_program(void)
{
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	self[MAX(n, 0)] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	return mem_printf("%s/" SERVER, self);
}

static int free_port(uint16_t *ret, struct err *e)
{
	osb_cleanup(fd_closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t len = sizeof(a);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) < 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		return err_set(e, -errno, "find a free port: %m");
	*ret = ntohs(a.sin_port);
	return 0;
}

/* A network that no route of this machine names. */
static unsigned free_network(void)
{
	osb_cleanup(fd_closep) int fd = open("/proc/net/fib_trie", O_RDONLY | O_CLOEXEC);
	osb_cleanup(buf_done) struct buf routes = BUF_INIT(ROUTES_MAX);
	unsigned second = 0;
	char *room, name[16];
	ssize_t n = 1;

	while (fd >= 0 && n > 0 && (room = buf_reserve(&routes, 65536))) {
		n = read(fd, room, 65536);
		buf_commit(&routes, n > 0 ? (size_t)n : 0);
	}
	for (unsigned i = 0; i < NETWORKS; i++) {
		second = NETWORK_FIRST + ((unsigned)getpid() + i) % NETWORKS;
		snprintf(name, sizeof(name), " 10.%u.", second);
		if (view_find_view(buf_view(&routes), view_of(name)) == routes.len)
			break;
	}
	return second;
}

static int write_file(const char *path, struct view text, struct err *e)
{
	osb_cleanup(fd_closep) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, text.p, text.len) != (ssize_t)text.len)
		return err_set(e, -errno, "write '%s': %m", path);
	return 0;
}

static int make_directory(struct embedded *s, struct err *e)
{
	const char *tmp = getenv("TMPDIR");
	osb_cleanup(mem_freep) char *dir =
		mem_printf("%s/opensandbox-mcp.XXXXXX", tmp && tmp[0] == '/' ? tmp : "/tmp");

	/* The server gives its rights up and still passes through. */
	if (!mkdtemp(dir) || chmod(dir, 0755) < 0)
		return err_set(e, -errno, "make a directory '%s': %m", dir);
	s->dir = take_ptr(dir);
	return 0;
}

static int configure(struct embedded *s, const char *path, struct err *e)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(16384), quoted = BUF_INIT(8192);
	osb_cleanup(mem_freep) char *state = mem_printf("%s/state", s->dir);
	uint16_t port;
	int r = free_port(&port, e);

	if (r < 0)
		return r;
	rand_hex(s->key);
	s->domain = mem_printf("127.0.0.1:%u", port);
	if (mkdir(state, 0755) < 0)
		return err_set(e, -errno, "make '%s': %m", state);
	r = json_escape(&quoted, view_of(state));
	if (r == 0)
		r = buf_printf(&text,
			       "[server]\nhost = \"127.0.0.1\"\nport = %u\napi_key = \"%s\"\n\n"
			       "[log]\nlevel = \"WARNING\"\n\n[runtime]\ntype = \"native\"\n\n"
			       "[native]\nstate_dir = \"%s\"\nsubnet = \"10.%u.0.0/16\"\n",
			       port, s->key, buf_str(&quoted), free_network());
	return r < 0 ? err_set(e, r, "the configuration is too long")
		     : write_file(path, buf_view(&text), e);
}

/* ---- its life ---- */

static int start_server(struct embedded *s, struct err *e)
{
	osb_cleanup(mem_freep) char *program = find_program();
	osb_cleanup(mem_freep) char *config = mem_printf("%s/server.toml", s->dir);
	osb_cleanup(strv_done) struct strv argv = STRV_INIT, env = STRV_INIT;
	struct spawn what = {.path = program,
			     .fds = {-1, STDERR_FILENO, STDERR_FILENO},
			     .flags = SPAWN_DIE_WITH_US};
	int r;

	if (access(program, X_OK) < 0)
		return err_set(e, -errno, "there is no " SERVER " beside this program: %s",
			       program);
	r = configure(s, config, e);
	if (r < 0)
		return r;
	strv_add(&argv, SERVER);
	strv_add(&argv, "--config");
	strv_add(&argv, config);
	strv_copy(&env, environ);
	what.argv = strv_args(&argv);
	what.env = strv_args(&env);
	return spawn(&what, &s->pid, &s->pidfd, e);
}

static bool wait_for_end(const struct embedded *s, int ms)
{
	struct pollfd p = {.fd = s->pidfd, .events = POLLIN};

	return poll(&p, 1, ms) > 0;
}

static int wait_for_answer(struct embedded *s, struct err *e)
{
	osb_config config = {.domain = s->domain,
			     .protocol = "http",
			     .api_key = s->key,
			     .config_file = "",
			     .no_environment = true,
			     .retries = -1};
	uint64_t until = clock_mono_us() + START_MS * UINT64_C(1000);
	char *version = NULL;
	osb_error why;

	if (osb_client_new(&config, &s->client, &why) < 0)
		return err_set(e, -EINVAL, "%s", why.message);
	while (osb_server_version(s->client, NULL, &version, &why) < 0) {
		if (wait_for_end(s, LOOK_MS))
			return err_set(e, -ECHILD, "the server did not start; it says why above");
		if (clock_mono_us() > until)
			return err_set(e, -ETIMEDOUT, "the server does not answer: %s",
				       why.message);
	}
	osb_free(version);
	return 0;
}

int embedded_start(struct embedded **ret, struct err *e)
{
	struct embedded *s = mem_new(struct embedded);
	int r;

	s->pidfd = -1;
	r = make_directory(s, e);
	if (r == 0)
		r = start_server(s, e);
	if (r == 0)
		r = wait_for_answer(s, e);
	if (r < 0) {
		embedded_stop(s);
		return r;
	}
	*ret = s;
	return 0;
}

/* Ends a page of sandboxes; false when there are none left. */
static bool kill_some(struct embedded *s)
{
	osb_list filter = {.page_size = 100};
	osb_sandbox_page *page = NULL;
	bool any;

	if (osb_sandbox_list(s->client, &filter, NULL, &page, NULL) < 0)
		return false;
	any = page->items_n > 0;
	for (size_t i = 0; i < page->items_n; i++) {
		osb_sandbox *box = NULL;

		if (osb_sandbox_open(s->client, page->items[i]->id, &box, NULL) == 0)
			(void)osb_sandbox_kill(box, NULL, NULL);
		osb_sandbox_free(box);
	}
	osb_sandbox_page_free(page);
	return any;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	/* What cannot be removed stays; the rest goes. */
	(void)remove(path);
	return 0;
}

void embedded_stop(struct embedded *s)
{
	uint64_t until = clock_mono_us() + STOP_MS * UINT64_C(1000);
	int status;

	if (!s)
		return;
	while (s->client && s->pidfd >= 0 && clock_mono_us() < until && kill_some(s))
		if (wait_for_end(s, LOOK_MS))
			break;
	if (s->pidfd >= 0 && spawn_reap(s->pidfd, &status) == -EAGAIN) {
		(void)kill(s->pid, SIGTERM);
		if (!wait_for_end(s, STOP_MS))
			(void)kill(s->pid, SIGKILL);
		(void)wait_for_end(s, -1);
		(void)!spawn_reap(s->pidfd, &status);
	}
	osb_client_free(s->client);
	fd_close(s->pidfd);
	if (s->dir)
		(void)nftw(s->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	free(s->dir);
	free(s->domain);
	free(s);
}
