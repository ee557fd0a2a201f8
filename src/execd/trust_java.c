/*
 * execd/trust_java.c - finds the keystores of Java, which asks no one else whom to trust.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "codec/base64.h"
#include "codec/java_keystore.h"
#include "execd/trust_int.h"

#define STORE_MAX   (8u << 20)
#define STORES_MAX  16
#define ENTRIES_MAX 128 /* of one directory */
#define DER_MAX	    8192
#define ALIAS	    "opensandbox-vault"

static const char *const common[] = {
	"/etc/ssl/certs/java/cacerts",
	"/etc/pki/ca-trust/extracted/java/cacerts",
	"/etc/pki/java/cacerts",
	"/var/lib/ca-certificates/java-cacerts",
};

/* Below these every directory may be a Java. */
static const char *const places[] = {"/usr/lib/jvm", "/opt/java", "/opt", "/usr/java",
				     "/usr/local"};
static const char *const inner[] = {"lib/security/cacerts", "jre/lib/security/cacerts"};

struct seen {
	struct view der;
	struct {
		dev_t dev;
		ino_t ino;
	} stores[STORES_MAX];
	size_t n;
};

/* The bytes between the lines of the first certificate. */
static ssize_t der_of(struct view pem, unsigned char ret[DER_MAX])
{
	static const struct view begin = {"-----BEGIN CERTIFICATE-----", 27};
	static const struct view end = {"-----END CERTIFICATE-----", 25};
	osb_cleanup(buf_done) struct buf digits = BUF_INIT(2 * DER_MAX);
	struct view text = view_skip(pem, view_find_view(pem, begin) + begin.len);

	text = view_first(text, view_find_view(text, end));
	for (size_t i = 0; i < text.len; i++)
		if (!strchr("\r\n \t", text.p[i]) && buf_append_char(&digits, text.p[i]) < 0)
			return -E2BIG;
	return base64_parse(buf_view(&digits), ret, DER_MAX);
}

/* Many paths lead to one file. */
static bool is_new(struct seen *s, int fd)
{
	struct stat st;

	if (s->n == STORES_MAX || fstat(fd, &st) < 0)
		return false;
	for (size_t i = 0; i < s->n; i++)
		if (s->stores[i].dev == st.st_dev && s->stores[i].ino == st.st_ino)
			return false;
	s->stores[s->n].dev = st.st_dev;
	s->stores[s->n++].ino = st.st_ino;
	return true;
}

static int change(struct seen *s, int fd)
{
	osb_cleanup(buf_done) struct buf old = BUF_INIT(STORE_MAX), made = BUF_INIT(STORE_MAX);
	int r = trust_read(fd, &old);

	if (r == 0)
		r = java_keystore_add(buf_view(&old), s->der, ALIAS, clock_wall_ms(), &made);
	if (r <= 0)
		return r;
	/* It only grows: whatever happens in between, the old part is there. */
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	return trust_write(fd, buf_view(&made));
}

static void add_to(struct seen *s, const char *path)
{
	osb_cleanup(fd_closep) int fd = trust_open(path, O_RDWR);
	int r;

	if (fd < 0 || !is_new(s, fd))
		return;
	r = change(s, fd);
	if (r < 0)
		log_line(LOG_INFO, "a keystore of Java stays as it is", LOG_S("path", path),
			 LOG_S("err", strerror(-r)));
}

static void add_to_home(struct seen *s, const char *home)
{
	char path[512];

	for (size_t i = 0; i < ARRAY_LEN(inner); i++) {
		int n = snprintf(path, sizeof(path), "%s/%s", home, inner[i]);

		if (n > 0 && (size_t)n < sizeof(path))
			add_to(s, path);
	}
}

static void look_below(struct seen *s, const char *place)
{
	DIR *d = opendir(place);
	struct dirent *entry;
	char home[512];

	for (int i = 0; d && i < ENTRIES_MAX && (entry = readdir(d)); i++) {
		int n = snprintf(home, sizeof(home), "%s/%s", place, entry->d_name);

		if (entry->d_name[0] != '.' && n > 0 && (size_t)n < sizeof(home))
			add_to_home(s, home);
	}
	if (d)
		closedir(d);
}

void trust_java(struct view pem, const char *home)
{
	unsigned char der[DER_MAX];
	ssize_t n = der_of(pem, der);
	struct seen s = {0};

	if (n <= 0)
		return;
	s.der = view_mem(der, (size_t)n);
	for (size_t i = 0; i < ARRAY_LEN(common); i++)
		add_to(&s, common[i]);
	if (home && home[0] == '/')
		add_to_home(&s, home);
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		look_below(&s, places[i]);
}
