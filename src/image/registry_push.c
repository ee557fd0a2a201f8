/*
 * image/registry_push.c - blobs that the registry does not have yet, then the manifest.
 *
 * A blob goes up in one request, to the address that the registry gives out for it; a connection
 * that breaks begins again with a new address.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hex.h"
#include "base/mem.h"
#include "codec/json_writer.h"
#include "codec/sha256.h"
#include "codec/url.h"
#include "image/registry_int.h"

#define PREFIX	      7 /* "sha256:" */
#define URL_MAX	      (32 * 1024)
#define MANIFEST_TYPE "application/vnd.oci.image.manifest.v1+json"
#define CONFIG_TYPE   "application/vnd.oci.image.config.v1+json"
#define ASK_WAIT_S    120
#define PROGRESS_US   (250 * 1000ull)

struct push {
	struct registry *r;
	const struct registry_push *p;
	const struct registry_blob *blob; /* that is sent now */
	int fd;
	uint64_t sent;
	struct view text; /* instead of a file: the manifest */
	struct registry_progress now;
	uint64_t told_us;
};

static void tell(struct push *x, bool at_once)
{
	struct registry_progress p = x->now;
	uint64_t now = clock_mono_us();

	if (!at_once && now < x->told_us + PROGRESS_US)
		return;
	x->told_us = now;
	p.bytes += x->sent;
	x->p->events.progress(x->p->events.arg, &p);
}

/* ---- what is sent ---- */

static int begin(void *arg, struct call *c, struct err *e)
{
	((struct push *)arg)->sent = 0;
	return 0;
}

static ssize_t more_of_file(void *arg, char *p, size_t n)
{
	struct push *x = arg;
	ssize_t got;

	n = (size_t)MIN((uint64_t)n, x->blob->size - x->sent);
	do
		got = pread(x->fd, p, n, (off_t)x->sent);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	x->sent += (uint64_t)got;
	tell(x, /* at_once= */ false);
	return got;
}

static ssize_t more_of_text(void *arg, char *p, size_t n)
{
	struct push *x = arg;
	struct view rest = view_first(view_skip(x->text, x->sent), n);

	memcpy(p, rest.p, rest.len);
	x->sent += rest.len;
	return (ssize_t)rest.len;
}

/* ---- a blob ---- */

static int open_blob(struct push *x, struct err *e)
{
	const struct registry_blob *b = x->blob;
	struct stat st;

	x->fd = fd_close(x->fd);
	x->fd = openat(x->r->o->blobs_fd, b->digest + PREFIX, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (x->fd < 0 || fstat(x->fd, &st) < 0)
		return err_set(e, errno == ENOENT ? -EIO : -errno, "open blob %.19s...: %m",
			       b->digest);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != b->size)
		return err_set(e, -EIO, "blob %.19s... has another size than was said", b->digest);
	return 0;
}

/* 1 = it has it, 0 = it has not. */
static int is_there(struct push *x, struct err *e)
{
	struct call c;
	int r;

	call_init(&c, x->r, "HEAD",
		  mem_printf("/v2/%s/blobs/%s", x->r->o->ref.repository, x->blob->digest));
	c.total_s = ASK_WAIT_S;
	r = call_run(&c, e);
	call_done(&c);
	return r >= 0 ? 1 : r == -ENOENT ? 0 : r;
}

/* Asks for an address to send to.  1 = not needed: it was found in the other repository. */
static int get_address(struct push *x, char **ret, struct err *e)
{
	osb_cleanup(buf_done) struct buf path = BUF_INIT(URL_MAX);
	struct call c;
	int r = buf_printf(&path, "/v2/%s/blobs/uploads/", x->r->o->ref.repository);

	if (r == 0 && x->r->o->mount_from.len > 0)
		r = buf_printf(&path, "?mount=%s&from=" VIEW_FMT, x->blob->digest,
			       VIEW_ARG(x->r->o->mount_from));
	if (r < 0)
		return err_set(e, r, "the repository's name is too long");
	call_init(&c, x->r, "POST", mem_strdup(buf_str(&path)));
	c.total_s = ASK_WAIT_S;
	r = call_run(&c, e);
	if (r >= 0) {
		r = c.t->head.status == 201;
		if (r == 0 && c.t->head.location)
			*ret = registry_url_join(c.url, c.t->head.location);
		if (r == 0 && !*ret)
			r = err_set(e, -EBADMSG, "the registry names no address for an upload");
	}
	call_done(&c);
	return r;
}

/* The address is the registry's choice: it must lead to a place that may be told what we send. */
static int send_to(struct push *x, const char *address, struct err *e)
{
	osb_cleanup(buf_done) struct buf url = BUF_INIT(URL_MAX);
	struct endpoint *ep = &x->r->endpoints[x->r->first];
	struct registry_origin to;
	struct call c;
	int r = registry_check_way(x->r, &ep->origin, address, &to, e);

	if (r < 0)
		return r;
	if (buf_printf(&url, "%s%sdigest=", address, strchr(address, '?') ? "&" : "?") < 0 ||
	    url_encode(&url, view_of(x->blob->digest), false) < 0)
		return err_set(e, -EBADMSG, "the address for an upload is too long");
	call_init(&c, x->r, "PUT", NULL);
	c.url = mem_strdup(buf_str(&url));
	c.foreign = !registry_origin_eq(&to, &ep->origin);
	c.flags = CALL_ONCE;
	c.before = begin;
	c.source = more_of_file;
	c.source_bytes = x->blob->size;
	c.arg = x;
	strv_add(&c.headers, "Content-Type: application/octet-stream");
	r = call_run(&c, e);
	call_done(&c);
	return r;
}

static int send_blob(struct push *x, struct err *e)
{
	unsigned failures = 0;
	int r;

	do {
		osb_cleanup(mem_freep) char *address = NULL;

		r = get_address(x, &address, e);
		if (r == 0)
			r = send_to(x, address, e);
		if (r == -EHOSTUNREACH)
			transfers_idle(x->r->transfers,
				       clock_mono_us() + x->r->o->limits.backoff_ms * 1000ull);
	} while (r == -EHOSTUNREACH && ++failures < x->r->o->limits.attempts);
	return r < 0 ? r : 0;
}

static int push_blob(struct push *x, const struct registry_blob *b, struct err *e)
{
	int r;

	x->blob = b;
	x->sent = 0;
	r = open_blob(x, e);
	if (r == 0)
		r = is_there(x, e);
	if (r == 0)
		r = send_blob(x, e);
	x->fd = fd_close(x->fd);
	x->sent = 0;
	if (r < 0)
		return err_ctx(e, "blob %.19s...", b->digest);
	x->now.bytes += b->size;
	return 0;
}

/* ---- the manifest ---- */

static void write_descriptor(struct json_writer *w, const struct registry_blob *b, struct view type)
{
	json_write_object(w);
	json_put_string(w, "mediaType", type);
	json_put_cstr(w, "digest", b->digest);
	json_write_key(w, "size");
	json_write_uint(w, b->size);
	json_write_object_end(w);
}

static int write_manifest(const struct registry_push *p, struct buf *out, struct err *e)
{
	struct json_writer w;

	json_writer_init(&w, out);
	json_write_object(&w);
	json_write_key(&w, "schemaVersion");
	json_write_int(&w, 2);
	json_put_cstr(&w, "mediaType", MANIFEST_TYPE);
	json_write_key(&w, "config");
	write_descriptor(&w, &p->config, VIEW(CONFIG_TYPE));
	json_write_key(&w, "layers");
	json_write_array(&w);
	for (size_t i = 0; i < p->layers_n; i++)
		write_descriptor(&w, &p->layers[i], p->layers[i].media_type);
	json_write_array_end(&w);
	json_write_object_end(&w);
	return json_writer_end(&w) < 0 ? err_set(e, -EFBIG, "the manifest is too large") : 0;
}

static int put_manifest(struct push *x, const char *digest, struct err *e)
{
	const struct image_ref *ref = &x->r->o->ref;
	struct call c;
	int r;

	call_init(&c, x->r, "PUT", mem_printf("/v2/%s/manifests/%s", ref->repository, ref->tag));
	c.before = begin;
	c.source = more_of_text;
	c.source_bytes = x->text.len;
	c.arg = x;
	c.total_s = ASK_WAIT_S;
	strv_add(&c.headers, "Content-Type: " MANIFEST_TYPE);
	r = call_run(&c, e);
	if (r >= 0 && c.t->head.digest[0] && strcmp(c.t->head.digest, digest) != 0)
		r = err_set(e, -EBADMSG,
			    "the registry keeps the manifest as %.19s..., not as "
			    "%.19s...",
			    c.t->head.digest, digest);
	call_done(&c);
	return r < 0 ? err_ctx(e, "manifest") : 0;
}

static int push_manifest(struct push *x, char ret[IMAGE_REF_DIGEST_LEN + 1], struct err *e)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(OCI_MANIFEST_MAX);
	unsigned char raw[SHA256_BYTES];
	char digest[IMAGE_REF_DIGEST_LEN + 1] = "sha256:";
	int r = write_manifest(x->p, &text, e);

	if (r < 0)
		return r;
	x->text = buf_view(&text);
	sha256_of(x->text, raw);
	hex_format(raw, sizeof(raw), digest + PREFIX);
	r = put_manifest(x, digest, e);
	if (r == 0)
		memcpy(ret, digest, sizeof(digest));
	return r;
}

int registry_push(struct registry *r, const struct registry_push *p,
		  char ret[IMAGE_REF_DIGEST_LEN + 1], struct err *e)
{
	struct push x = {.r = r, .p = p, .fd = -1, .now.layers = p->layers_n};
	int failed = 0;

	if (r->o->ref.digest[0])
		return err_set(e, -EINVAL, "an image is pushed to a tag, not to a digest");
	x.now.total = p->config.size;
	for (size_t i = 0; i < p->layers_n; i++)
		x.now.total += p->layers[i].size;
	tell(&x, /* at_once= */ true);
	for (size_t i = 0; failed == 0 && i < p->layers_n; i++) {
		failed = push_blob(&x, &p->layers[i], e);
		x.now.layers_done += failed == 0;
	}
	if (failed == 0)
		failed = push_blob(&x, &p->config, e);
	if (failed == 0)
		failed = push_manifest(&x, ret, e);
	if (failed == 0) {
		x.sent = 0;
		tell(&x, /* at_once= */ true);
	}
	return failed;
}
