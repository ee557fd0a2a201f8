/*
 * mcp/web_post.c - see web_post.h.
 */
#include "mcp/web_post.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/mem.h"
#include "net/http_server.h"
#include "net/loop.h"

#define KEEP_ALIVE_MS 15000
#define QUEUE_MAX     (1u << 20) /* above it, news of progress are left out */

struct web_mail {
	struct loop_fd *watch;
	struct loop_timer *timer;
	struct list posts; /* that exist */
	int event_fd;
	pthread_mutex_t lock; /* of the letters */
	struct list letters;
};

struct letter {
	struct list link;
	struct web_post *to;
	bool last;
	size_t len;
	char text[];
};

struct web_post {
	struct list link;
	struct web_mail *mail;
	struct http_exchange *x; /* NULL: the client has gone */
	bool streams;		 /* the answer has begun, as events */
	void (*gone)(void *arg);
	void *arg;
};

/* ---- exchanges ---- */

static void on_gone(struct http_exchange *x, void *arg)
{
	struct web_post *p = arg;

	(void)x;
	p->x = NULL;
	if (p->gone) {
		p->gone(p->arg);
		web_post_free(p);
	}
}

struct web_post *web_post_new(struct web_mail *m, struct http_exchange *x)
{
	struct web_post *p = mem_new(struct web_post);

	p->mail = m;
	p->x = x;
	list_push_back(&m->posts, &p->link);
	http_on_gone(x, on_gone, p);
	return p;
}

void web_post_free(struct web_post *p)
{
	list_remove(&p->link);
	free(p);
}

void web_post_stream(struct web_post *p)
{
	p->streams = true;
	http_reply_header(p->x, "Content-Type", VIEW("text/event-stream"));
	http_reply_header(p->x, "Cache-Control", VIEW("no-cache"));
	http_reply_begin(p->x, 200, -1);
	(void)http_reply_write(p->x, VIEW(": here\n\n"));
}

struct web_post *web_stream_new(struct web_mail *m, struct http_exchange *x,
				void (*gone)(void *arg), void *arg)
{
	struct web_post *p = web_post_new(m, x);

	p->gone = gone;
	p->arg = arg;
	web_post_stream(p);
	return p;
}

void web_stream_end(struct web_post *p)
{
	if (!p)
		return;
	http_reply_end(p->x);
	web_post_free(p);
}

/* ---- letters ---- */

static void send_letter(void *arg, struct view message, bool last)
{
	struct web_post *p = arg;
	struct web_mail *m = p->mail;
	struct letter *letter = mem_alloc(sizeof(*letter) + message.len);
	uint64_t one = 1;

	*letter = (struct letter){.to = p, .last = last, .len = message.len};
	if (message.len)
		memcpy(letter->text, message.p, message.len);
	(void)pthread_mutex_lock(&m->lock);
	list_push_back(&m->letters, &letter->link);
	(void)pthread_mutex_unlock(&m->lock);
	/* It cannot fail: the counter never comes near its end. */
	(void)!write(m->event_fd, &one, sizeof(one));
}

struct sink web_post_sink(struct web_post *p)
{
	return (struct sink){send_letter, p};
}

static void deliver_event(struct web_post *p, struct view text)
{
	(void)http_reply_write(p->x, VIEW("event: message\ndata: "));
	(void)http_reply_write(p->x, text);
	(void)http_reply_write(p->x, VIEW("\n\n"));
}

static void deliver(struct web_post *p, struct view text, bool last)
{
	if (p->x && p->streams) {
		if (text.len && (last || http_reply_queued(p->x) < QUEUE_MAX))
			deliver_event(p, text);
		if (last)
			http_reply_end(p->x);
	} else if (p->x && last) {
		http_reply(p->x, text.len ? 200 : 202, text.len ? "application/json" : NULL, text);
	}
	if (last)
		web_post_free(p);
}

static struct letter *next_letter(struct web_mail *m)
{
	struct letter *letter = NULL;

	(void)pthread_mutex_lock(&m->lock);
	if (!list_empty(&m->letters)) {
		letter = list_entry(m->letters.next, struct letter, link);
		list_remove(&letter->link);
	}
	(void)pthread_mutex_unlock(&m->lock);
	return letter;
}

static void on_letters(void *arg, int fd, unsigned events)
{
	struct web_mail *m = arg;
	struct letter *letter;
	uint64_t count;

	(void)events;
	(void)!read(fd, &count, sizeof(count));
	while ((letter = next_letter(m))) {
		deliver(letter->to, view_mem(letter->text, letter->len), letter->last);
		free(letter);
	}
}

/* Proxies and clients give up on streams that are silent. */
static void on_timer(void *arg)
{
	struct web_mail *m = arg;

	list_each_safe (it, next, &m->posts) {
		struct web_post *p = list_entry(it, struct web_post, link);

		if (p->x && p->streams && http_reply_queued(p->x) < QUEUE_MAX)
			(void)http_reply_write(p->x, VIEW(": still here\n\n"));
	}
}

int web_mail_new(struct loop *l, struct web_mail **ret, struct err *e)
{
	struct web_mail *m = mem_new(struct web_mail);
	int r;

	list_init(&m->posts);
	list_init(&m->letters);
	(void)pthread_mutex_init(&m->lock, NULL);
	m->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = m->event_fd < 0 ? err_set(e, -errno, "eventfd: %m")
			    : loop_fd_new(l, m->event_fd, on_letters, m, &m->watch, e);
	if (r < 0) {
		web_mail_free(m);
		return r;
	}
	loop_fd_want(m->watch, LOOP_READ);
	m->timer = loop_timer_new(l, on_timer, m);
	loop_timer_repeat(m->timer, KEEP_ALIVE_MS);
	*ret = m;
	return 0;
}

void web_mail_free(struct web_mail *m)
{
	struct letter *letter;

	if (!m)
		return;
	loop_timer_free(m->timer);
	loop_fd_free(m->watch);
	while ((letter = next_letter(m)))
		free(letter);
	list_each_safe (it, next, &m->posts)
		web_post_free(list_entry(it, struct web_post, link));
	fd_close(m->event_fd);
	(void)pthread_mutex_destroy(&m->lock);
	free(m);
}
