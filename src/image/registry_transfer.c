/*
 * image/registry_transfer.c - easy handles on a multi handle, and what their answers say.
 */
#include "image/registry_transfer.h"

#include <assert.h>
#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/num.h"

#define CONNECT_MS     10000
#define BUFFER_BYTES   (128 * 1024)
#define HEADERS_MAX    (64 * 1024)
#define SAID_MAX       (8 * 1024)
#define UNWANTED_MAX   (1024 * 1024)
#define LOCATION_MAX   (16 * 1024)
#define CHALLENGES_MAX (16 * 1024)
#define SLOW_BYTES     1024 /* a second: slower than that is a stall */
#define TICK_MS	       500

struct transfers {
	CURLM *multi;
	struct list over;	      /* not yet returned */
	const char *ca_file, *ca_dir; /* or NULL: the machine's own */
};

struct running {
	struct transfer t; /* what callers see */
	struct transfers *ts;
	struct list link;
	CURL *easy;
	struct curl_slist *headers;
	transfer_sink_fn *sink;
	transfer_source_fn *source;
	void *arg;
	size_t header_bytes;
	size_t unwanted; /* bytes of a body that nobody asked for */
	bool over;
	struct err refused; /* by the sink or for its size */
	char range[24];
	char why[CURL_ERROR_SIZE];
};

static struct running *running_of(struct transfer *t)
{
	return container_of(t, struct running, t);
}

/* ---- what arrives ---- */

static void copy(char *to, size_t size, struct view v)
{
	v = view_first(v, size - 1);
	memcpy(to, v.p, v.len);
	to[v.len] = '\0';
}

/* bytes 100-199/200 */
static void read_range(struct transfer_head *h, struct view v)
{
	struct view rest = v, start;

	if (!view_istarts(v, VIEW("bytes ")))
		return;
	rest = view_skip(v, 6);
	if (!view_split(&rest, '-', &start))
		return;
	rest = view_skip(rest, view_find(rest, '/') + 1);
	h->has_range = num_parse_u64(view_trim(start), &h->range_start) &&
		       num_parse_u64(view_trim(rest), &h->range_total);
}

static void add_challenge(struct transfer_head *h, struct view v)
{
	size_t before = h->challenges.len;

	if ((before > 0 && buf_append_str(&h->challenges, ", ") < 0) ||
	    buf_append_view(&h->challenges, v) < 0)
		buf_truncate(&h->challenges, before);
}

static void note_header(struct transfer_head *h, struct view name, struct view v)
{
	if (view_iis(name, "content-type"))
		copy(h->content_type, sizeof(h->content_type), v);
	else if (view_iis(name, "docker-content-digest"))
		copy(h->digest, sizeof(h->digest), v);
	else if (view_iis(name, "content-range"))
		read_range(h, v);
	else if (view_iis(name, "content-length"))
		h->has_length = num_parse_u64(v, &h->length);
	else if (view_iis(name, "www-authenticate"))
		add_challenge(h, v);
	else if (view_iis(name, "location") && !h->location && v.len <= LOCATION_MAX &&
		 !view_has(v, '\0'))
		h->location = mem_strndup(v.p, v.len);
}

static void head_done(struct transfer_head *h)
{
	free(h->location);
	buf_done(&h->challenges);
	*h = (struct transfer_head){.challenges = BUF_INIT(CHALLENGES_MAX)};
}

static size_t on_header(char *p, size_t size, size_t n, void *arg)
{
	struct running *x = arg;
	struct view line = view_mem(p, size * n), name;

	x->header_bytes += line.len;
	if (x->header_bytes > HEADERS_MAX) {
		(void)err_set(&x->refused, -EBADMSG, "the answer's head is larger than %d bytes",
			      HEADERS_MAX);
		return 0;
	}
	while (line.len > 0 && (line.p[line.len - 1] == '\n' || line.p[line.len - 1] == '\r'))
		line.len--;
	/* Interim answers and a proxy's own come before the one that counts. */
	if (view_starts(line, VIEW("HTTP/"))) {
		head_done(&x->t.head);
		return size * n;
	}
	if (view_has(line, ':') && view_split(&line, ':', &name))
		note_header(&x->t.head, name, view_trim(line));
	return size * n;
}

static int take_body(struct running *x, struct view bytes)
{
	if (x->sink)
		return x->sink(x->arg, &x->t, bytes, &x->refused);
	x->unwanted += bytes.len;
	if (x->unwanted > UNWANTED_MAX)
		return err_set(&x->refused, -EBADMSG, "an answer is larger than %d bytes",
			       UNWANTED_MAX);
	return 0;
}

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
	struct running *x = arg;
	struct view bytes = view_mem(p, size * n);
	long status = 0;

	(void)curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
	x->t.head.status = (int)status;
	if (status >= 200 && status <= 299)
		return take_body(x, bytes) < 0 ? 0 : bytes.len;
	/* Enough to be read by people; what follows is not worth waiting for. */
	if (x->t.said.len + bytes.len > SAID_MAX)
		bytes = view_first(bytes, SAID_MAX - x->t.said.len);
	return buf_append_view(&x->t.said, bytes) < 0 ? 0 : bytes.len;
}

static size_t on_read(char *p, size_t size, size_t n, void *arg)
{
	struct running *x = arg;
	ssize_t got = x->source(x->arg, p, size * n);

	if (got >= 0)
		return (size_t)got;
	(void)err_set(&x->refused, (int)got, "read what is to be sent: %s", strerror((int)-got));
	return CURL_READFUNC_ABORT;
}

/* Asked for when a connection that was kept turns out to be dead. */
static int on_seek(void *arg, curl_off_t offset, int origin)
{
	return CURL_SEEKFUNC_CANTSEEK;
}

/* ---- how it ends ---- */

static void finish(struct running *x, CURLcode result)
{
	struct transfer *t = &x->t;
	curl_off_t after = 0;
	long status = 0;

	(void)curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
	(void)curl_easy_getinfo(x->easy, CURLINFO_RETRY_AFTER, &after);
	t->head.status = (int)status;
	t->head.retry_after_s = after > 0 ? (uint64_t)after : 0;
	x->over = true;
	list_push_back(&x->ts->over, &x->link);
	if (x->refused.code < 0)
		t->failed = x->refused;
	else if (result != CURLE_OK && (status < 300 || t->said.len < SAID_MAX))
		(void)err_set(&t->failed, -EHOSTUNREACH, "%s",
			      x->why[0] ? x->why : curl_easy_strerror(result));
	t->certificate = result == CURLE_PEER_FAILED_VERIFICATION;
	t->no_tls = result == CURLE_SSL_CONNECT_ERROR;
}

/* ---- how it begins ---- */

static int set_headers(struct running *x, const struct transfer_request *rq)
{
	/* curl would wait for a "100 Continue" that few registries send. */
	struct curl_slist *all = curl_slist_append(NULL, "Expect:");

	for (size_t i = 0; all && rq->headers && i < rq->headers->len; i++) {
		struct curl_slist *longer = curl_slist_append(all, rq->headers->v[i]);

		if (!longer)
			curl_slist_free_all(all);
		all = longer;
	}
	x->headers = all;
	return all ? 0 : -ENOMEM;
}

static void set_method(struct running *x, const struct transfer_request *rq)
{
	CURL *c = x->easy;

	if (strcmp(rq->method, "HEAD") == 0) {
		curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
	} else if (rq->source || strcmp(rq->method, "PUT") == 0) {
		curl_easy_setopt(c, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(c, CURLOPT_INFILESIZE_LARGE, (curl_off_t)rq->source_bytes);
		curl_easy_setopt(c, CURLOPT_READFUNCTION, on_read);
		curl_easy_setopt(c, CURLOPT_READDATA, x);
		curl_easy_setopt(c, CURLOPT_SEEKFUNCTION, on_seek);
		curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, rq->method);
	} else if (strcmp(rq->method, "POST") == 0) {
		curl_easy_setopt(c, CURLOPT_POST, 1L);
		curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE, 0L);
		curl_easy_setopt(c, CURLOPT_POSTFIELDS, "");
	}
}

static void set_limits(struct running *x, const struct transfer_request *rq)
{
	CURL *c = x->easy;

	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES);
	curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, (long)rq->stall_s);
	curl_easy_setopt(c, CURLOPT_TIMEOUT, (long)rq->total_s);
	curl_easy_setopt(c, CURLOPT_BUFFERSIZE, (long)BUFFER_BYTES);
	curl_easy_setopt(c, CURLOPT_UPLOAD_BUFFERSIZE, (long)BUFFER_BYTES);
	curl_easy_setopt(c, CURLOPT_USERAGENT, "opensandbox-image");
	if (x->ts->ca_file)
		curl_easy_setopt(c, CURLOPT_CAINFO, x->ts->ca_file);
	if (x->ts->ca_dir)
		curl_easy_setopt(c, CURLOPT_CAPATH, x->ts->ca_dir);
	if (rq->flags & TRANSFER_NO_PROXY)
		curl_easy_setopt(c, CURLOPT_NOPROXY, "*");
	if (rq->flags & TRANSFER_NO_VERIFY) {
		curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 0L);
	}
}

static int set_up(struct running *x, const struct transfer_request *rq, struct err *e)
{
	CURL *c = x->easy;

	if (!c || set_headers(x, rq) < 0)
		return err_set(e, -ENOMEM, "no memory for a request");
	curl_easy_setopt(c, CURLOPT_PRIVATE, x);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, x->why);
	curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(c, CURLOPT_HEADERDATA, x);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, x);
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, x->headers);
	set_limits(x, rq);
	set_method(x, rq);
	/* Not as curl resumes: it would not take the whole instead of the rest. */
	if (rq->range_from > 0) {
		snprintf(x->range, sizeof(x->range), "%" PRIu64 "-", rq->range_from);
		curl_easy_setopt(c, CURLOPT_RANGE, x->range);
	}
	if (curl_easy_setopt(c, CURLOPT_URL, rq->url) || curl_multi_add_handle(x->ts->multi, c))
		return err_set(e, -ENOMEM, "no memory for a request");
	return 0;
}

int transfer_start(struct transfers *ts, const struct transfer_request *rq, struct transfer **ret,
		   struct err *e)
{
	struct running *x = mem_new(struct running);
	int r;

	list_init(&x->link);
	x->ts = ts;
	x->sink = rq->sink;
	x->source = rq->source;
	x->arg = rq->arg;
	x->t.head.challenges = BUF_INIT(CHALLENGES_MAX);
	x->t.said = BUF_INIT(SAID_MAX);
	x->easy = curl_easy_init();
	r = set_up(x, rq, e);
	if (r < 0) {
		transfer_free(&x->t);
		return r;
	}
	*ret = &x->t;
	return 0;
}

void transfer_free(struct transfer *t)
{
	struct running *x = t ? running_of(t) : NULL;

	if (!x)
		return;
	list_remove(&x->link);
	(void)curl_multi_remove_handle(x->ts->multi, x->easy);
	curl_easy_cleanup(x->easy);
	curl_slist_free_all(x->headers);
	head_done(&t->head);
	buf_done(&t->said);
	free(x);
}

/* ---- all of them ---- */

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] ? value : NULL;
}

struct transfers *transfers_new(void)
{
	struct transfers *ts = mem_new(struct transfers);

	/* curl reads this one in lower case alone, for the sake of CGI programs, which we are not.
	 */
	if (!variable("http_proxy") && variable("HTTP_PROXY"))
		(void)setenv("http_proxy", variable("HTTP_PROXY"), /* overwrite= */ 1);
	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		abort();
	ts->multi = curl_multi_init();
	if (!ts->multi)
		abort();
	ts->ca_file = variable("SSL_CERT_FILE");
	ts->ca_dir = variable("SSL_CERT_DIR");
	list_init(&ts->over);
	return ts;
}

void transfers_free(struct transfers *ts)
{
	if (!ts)
		return;
	assert(list_empty(&ts->over));
	(void)curl_multi_cleanup(ts->multi);
	curl_global_cleanup();
	free(ts);
}

static void collect(struct transfers *ts)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(ts->multi, &left))) {
		struct running *x = NULL;

		(void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&x);
		if (m->msg == CURLMSG_DONE && x)
			finish(x, m->data.result);
	}
}

static struct transfer *take_over(struct transfers *ts, struct transfer *one)
{
	struct running *x;

	if (one ? !running_of(one)->over : list_empty(&ts->over))
		return NULL;
	x = one ? running_of(one) : list_entry(ts->over.next, struct running, link);
	list_remove(&x->link);
	return &x->t;
}

/* A moment of work; false when the deadline has passed. */
static bool work(struct transfers *ts, uint64_t deadline_us)
{
	uint64_t now = clock_mono_us();
	int running;

	if (now >= deadline_us)
		return false;
	(void)curl_multi_poll(ts->multi, NULL, 0,
			      (int)MIN((deadline_us - now) / 1000 + 1, (uint64_t)TICK_MS), NULL);
	(void)curl_multi_perform(ts->multi, &running);
	collect(ts);
	return true;
}

struct transfer *transfers_wait(struct transfers *ts, struct transfer *one, uint64_t deadline_us)
{
	struct transfer *t;
	int running;

	(void)curl_multi_perform(ts->multi, &running);
	collect(ts);
	do
		t = take_over(ts, one);
	while (!t && work(ts, deadline_us));
	return t;
}

void transfers_idle(struct transfers *ts, uint64_t until_us)
{
	while (work(ts, until_us))
		continue;
}
