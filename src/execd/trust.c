/*
 * execd/trust.c - see trust.h.
 *
 * The image decides what lies at these paths, so links are followed only within its own tree:
 * nothing is written to what is mounted into it, and nothing but plain files is opened.
 */
#include "execd/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/strv.h"
#include "execd/file_root.h"
#include "execd/trust_int.h"
#include "sys/openat2.h"

#define BUNDLE_MAX (16u << 20)
#define TRUST_DIR  "/opt/opensandbox"

/* Debian and Alpine, RHEL and Fedora, openSUSE, Alpine's and LibreSSL's. */
static const char *const bundles[] = {
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/var/lib/ca-certificates/ca-bundle.pem",
	"/etc/ssl/ca-bundle.pem",
	"/etc/ssl/cert.pem",
};

/* ---- files ---- */

int trust_open(const char *path, int flags)
{
	osb_cleanup(fd_closep) int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = root < 0 ? -errno : openat2_same_mount(root, path, flags | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		fd_close(fd);
		return -EINVAL;
	}
	return fd;
}

int trust_read(int fd, struct buf *ret)
{
	struct stat st;
	char *to;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > BUNDLE_MAX)
		return -EINVAL;
	to = buf_reserve(ret, (size_t)st.st_size);
	for (off_t at = 0; to && at < st.st_size;) {
		ssize_t n = pread(fd, to + at, (size_t)(st.st_size - at), at);

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		at += n;
		buf_commit(ret, (size_t)n);
	}
	return to || st.st_size == 0 ? 0 : -E2BIG;
}

int trust_write(int fd, struct view text)
{
	while (text.len) {
		ssize_t n = write(fd, text.p, text.len);

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		text = view_skip(text, (size_t)n);
	}
	return 0;
}

/* A new file of our own, whatever the image has put in its place. */
static int make_file(const char *name, struct view first, struct view second)
{
	struct err e = ERR_NONE;
	osb_cleanup(fd_closep) int dir = file_root_make_dirs(&file_root_real, TRUST_DIR, &e);
	osb_cleanup(fd_closep) int fd = -1;
	int r;

	if (dir < 0)
		return dir;
	if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
		return -errno;
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	r = trust_write(fd, first);
	if (r == 0 && first.len && first.p[first.len - 1] != '\n')
		r = trust_write(fd, VIEW("\n"));
	return r < 0 ? r : trust_write(fd, second);
}

/* ---- bundles ---- */

/* Behind what is there, once. */
static int append(const char *path, struct view pem)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(BUNDLE_MAX);
	osb_cleanup(fd_closep) int fd = trust_open(path, O_RDWR | O_APPEND);
	int r = fd < 0 ? fd : trust_read(fd, &text);

	if (r < 0)
		return r;
	if (view_find_view(buf_view(&text), pem) < text.len)
		return 0;
	if (text.len && text.mem[text.start + text.len - 1] != '\n')
		r = trust_write(fd, VIEW("\n"));
	return r < 0 ? r : trust_write(fd, pem);
}

/* The authorities of the image and ours, where its own bundle cannot be changed. */
static int make_bundle(const char *system, struct view pem)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(BUNDLE_MAX);
	osb_cleanup(fd_closep) int fd = open(system, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int r = fd < 0 ? -errno : trust_read(fd, &text);

	return r < 0 ? r : make_file("ca-bundle.pem", buf_view(&text), pem);
}

/* The bundle that has all authorities; NULL if the image has none. */
static const char *add_to_bundles(struct view pem)
{
	const char *first = NULL, *changed = NULL;
	int r;

	for (size_t i = 0; i < ARRAY_LEN(bundles); i++) {
		if (access(bundles[i], R_OK) < 0)
			continue;
		if (!first)
			first = bundles[i];
		r = append(bundles[i], pem);
		if (r == 0 && !changed)
			changed = bundles[i];
		if (r < 0)
			log_line(LOG_INFO, "a bundle of authorities stays as it is",
				 LOG_S("path", bundles[i]), LOG_S("err", strerror(-r)));
	}
	if (changed || !first)
		return changed;
	return make_bundle(first, pem) == 0 ? TRUST_BUNDLE : NULL;
}

/* ---- variables ---- */

static void set_all(struct strv *env, const struct view *names, size_t n, const char *value)
{
	for (size_t i = 0; i < n; i++)
		if (!strv_env_get(env, names[i]))
			strv_env_set(env, names[i], view_of(value));
}

void trust_install(struct view pem, struct strv *env)
{
	/* Those who read these believe nothing else, so the file must have all authorities. */
	static const struct view instead[] = {
		VIEW("SSL_CERT_FILE"),	   VIEW("REQUESTS_CA_BUNDLE"), VIEW("CURL_CA_BUNDLE"),
		VIEW("GIT_SSL_CAINFO"),	   VIEW("PIP_CERT"),	       VIEW("AWS_CA_BUNDLE"),
		VIEW("CARGO_HTTP_CAINFO"),
	};
	static const struct view besides[] = {VIEW("NODE_EXTRA_CA_CERTS"), VIEW("DENO_CERT")};
	const char *bundle;
	int r = make_file("mitmproxy-ca-cert.pem", pem, VIEW_NONE);

	if (r < 0) {
		log_line(LOG_ERROR, "the sandbox's authority is not installed",
			 LOG_S("err", strerror(-r)));
		return;
	}
	bundle = add_to_bundles(pem);
	set_all(env, besides, ARRAY_LEN(besides), TRUST_FILE);
	/* Without a bundle programs that have authorities of their own would lose them. */
	if (bundle)
		set_all(env, instead, ARRAY_LEN(instead), bundle);
	else
		set_all(env, instead, /* n= */ 1, TRUST_FILE);
	trust_java(pem, strv_env_get(env, VIEW("JAVA_HOME")));
}
