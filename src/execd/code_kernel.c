/*
 * execd/code_kernel.c - the process between execd and a Jupyter kernel: see code_kernel.h.
 */
#include "execd/code_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/strv.h"
#include "codec/json.h"
#include "codec/json_copy.h"
#include "codec/json_writer.h"
#include "codec/jupyter_msg.h"
#include "execd/code_kernel_link.h"
#include "execd/code_kernelspec.h"
#include "execd/code_languages.h"
#include "sys/spawn.h"

#define LINE_MAX_BYTES ((size_t)64 << 20)
#define LANGUAGES_MAX  64
#define CHANNEL_MIN_FD 100
#define GREET_MS       500 /* until the kernel is asked again whether it hears us */
#define READY_US       60000000
#define EXIT_MS	       1000

struct kernel {
	struct kernel_link link;
	int channel;
	struct buf in; /* from execd */
	bool by_message;
	char *version;
	bool ready;
	/* The run: */
	char *run_id; /* NULL: none */
	int64_t count;
	char request[RAND_HEX_LEN + 1];
	bool idle, replied, failed;
};

static volatile sig_atomic_t interrupts;

static void on_interrupt(int signum)
{
	interrupts = 1;
}

/* ---- to execd ---- */

static int write_all(int fd, struct view bytes)
{
	while (bytes.len > 0) {
		ssize_t n = write(fd, bytes.p, bytes.len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			bytes = view_skip(bytes, (size_t)n);
	}
	return 0;
}

struct line {
	struct buf text;
	struct json_writer w;
};

static void line_begin(struct line *l, const char *event, const char *id)
{
	l->text = BUF_INIT(LINE_MAX_BYTES - 1);
	json_writer_init(&l->w, &l->text);
	json_write_object(&l->w);
	json_put_cstr(&l->w, "ev", event);
	if (id)
		json_put_cstr(&l->w, "id", id);
}

/* Execd is the only one who could mind that a line is lost: its end is ours, too. */
static void line_send(struct kernel *k, struct line *l)
{
	json_write_object_end(&l->w);
	if (json_writer_end(&l->w) == 0 && buf_append_char(&l->text, '\n') == 0)
		(void)!write_all(k->channel, buf_view(&l->text));
	buf_done(&l->text);
}

static void send_text(struct kernel *k, const char *event, const char *key, struct view text)
{
	struct line l;

	line_begin(&l, event, NULL);
	json_put_string(&l.w, key, text);
	line_send(k, &l);
}

static void send_error(struct kernel *k, const struct json *content)
{
	struct view name = VIEW("Error"), value = VIEW(""), frame;
	const struct json *trace = json_get(content, "traceback");
	struct line l;

	if (k->failed)
		return;
	k->failed = true;
	(void)json_str(json_get(content, "ename"), &name);
	(void)json_str(json_get(content, "evalue"), &value);
	line_begin(&l, "error", k->run_id);
	json_put_string(&l.w, "ename", name);
	json_put_string(&l.w, "evalue", value);
	json_write_key(&l.w, "traceback");
	json_write_array(&l.w);
	for (size_t i = 0; i < json_len(trace); i++)
		if (json_str(json_at(trace, i), &frame))
			json_write_string(&l.w, frame);
	json_write_array_end(&l.w);
	line_send(k, &l);
}

/* Values of MIME types are strings to execd: what a kernel sends as JSON becomes its text. */
static void put_data(struct json_writer *w, const struct json *data)
{
	const struct json *value;
	struct view mime, text;
	void *it = NULL;

	json_write_key(w, "data");
	json_write_object(w);
	while (json_next(data, &it, &mime, &value)) {
		struct buf copy = BUF_INIT(LINE_MAX_BYTES);
		struct json_writer inner;

		json_write_key_view(w, mime);
		json_writer_init(&inner, &copy);
		if (!json_str(value, &text)) {
			json_write_json(&inner, value);
			text = json_writer_end(&inner) == 0 ? buf_view(&copy) : VIEW_NONE;
		}
		json_write_string(w, text);
		buf_done(&copy);
	}
	if (!json_get(data, "text/plain"))
		json_put_cstr(w, "text/plain", "");
	json_write_object_end(w);
}

static void send_data(struct kernel *k, const char *event, const struct json *content)
{
	struct line l;

	line_begin(&l, event, k->run_id);
	if (strcmp(event, "result") == 0)
		json_put_int(&l.w, "count", k->count);
	put_data(&l.w, json_get(content, "data"));
	line_send(k, &l);
}

static void finish_if_over(struct kernel *k)
{
	struct line l;

	if (!k->run_id || !k->idle || !k->replied)
		return;
	line_begin(&l, "done", k->run_id);
	line_send(k, &l);
	free(take_ptr(k->run_id));
}

/* ---- from the kernel ---- */

static void take_stream(const struct json *content)
{
	struct view name, text;

	if (json_str(json_get(content, "name"), &name) &&
	    json_str(json_get(content, "text"), &text))
		(void)!write_all(view_is(name, "stderr") ? STDERR_FILENO : STDOUT_FILENO, text);
}

static void take_output(struct kernel *k, const struct jupyter_msg *m)
{
	struct view state;

	if (view_is(m->type, "stream")) {
		take_stream(m->content);
	} else if (view_is(m->type, "execute_result")) {
		send_data(k, "result", m->content);
	} else if (view_is(m->type, "display_data") || view_is(m->type, "update_display_data")) {
		send_data(k, "display", m->content);
	} else if (view_is(m->type, "error")) {
		send_error(k, m->content);
	} else if (view_is(m->type, "status")) {
		k->idle = json_str(json_get(m->content, "execution_state"), &state) &&
			  view_is(state, "idle");
	}
}

/* What a pager would have shown ("name?" in IPython) is printed. */
static void take_payload(const struct json *payload)
{
	for (size_t i = 0; i < json_len(payload); i++) {
		const struct json *one = json_at(payload, i);
		struct view text;

		if (json_str(json_get(json_get(one, "data"), "text/plain"), &text))
			(void)!write_all(STDOUT_FILENO, text);
	}
}

static void take_reply(struct kernel *k, const struct jupyter_msg *m)
{
	struct view status = VIEW("");

	if (!view_is(m->type, "execute_reply"))
		return;
	k->replied = true;
	take_payload(json_get(m->content, "payload"));
	(void)json_str(json_get(m->content, "status"), &status);
	if (!view_is(status, "ok"))
		send_error(k, m->content);
}

static void take_greeting(struct kernel *k, const struct jupyter_msg *m)
{
	struct view version = VIEW("");

	if (!view_is(m->type, "kernel_info_reply"))
		return;
	(void)json_str(json_get(json_get(m->content, "language_info"), "version"), &version);
	k->replied = true;
	free(k->version);
	k->version = mem_strndup(version.p, version.len);
}

static int hear(struct kernel *k, enum kernel_channel from, struct err *e)
{
	struct jupyter_msg m;
	int r = kernel_link_fill(&k->link, from, e);

	while (r == 0 && (r = kernel_link_next(&k->link, from, &m, e)) > 0) {
		if (!k->ready && from == KERNEL_SHELL)
			take_greeting(k, &m);
		else if (!k->ready)
			k->idle = true; /* it publishes, and we hear it */
		else if (!k->run_id || !view_is(m.parent_id, k->request))
			(void)0; /* of an earlier run, or of nobody's */
		else if (from == KERNEL_IOPUB)
			take_output(k, &m);
		else if (from == KERNEL_SHELL)
			take_reply(k, &m);
		jupyter_msg_done(&m);
		r = 0;
	}
	if (k->ready)
		finish_if_over(k);
	return r;
}

/* ---- from execd ---- */

static int run(struct kernel *k, const struct json *message, struct err *e)
{
	osb_cleanup(buf_done) struct buf content = BUF_INIT(LINE_MAX_BYTES);
	struct view id, code;
	struct json_writer w;

	if (!json_str(json_get(message, "id"), &id) || !json_str(json_get(message, "code"), &code))
		return err_set(e, -EPROTO, "a run without id or code");
	k->run_id = mem_strndup(id.p, id.len);
	k->idle = k->replied = k->failed = false;
	k->count = 0;
	(void)json_int(json_get(message, "count"), &k->count);
	json_writer_init(&w, &content);
	json_write_object(&w);
	json_put_string(&w, "code", code);
	json_put_bool(&w, "silent", false);
	json_put_bool(&w, "store_history", true);
	json_put_bool(&w, "allow_stdin", false);
	json_put_bool(&w, "stop_on_error", false);
	json_write_key(&w, "user_expressions");
	json_write_object(&w);
	json_write_object_end(&w);
	json_write_object_end(&w);
	if (json_writer_end(&w) < 0)
		return err_set(e, -E2BIG, "the code is too long for a kernel");
	return kernel_link_send(&k->link, KERNEL_SHELL, "execute_request", buf_view(&content),
				k->request, e);
}

/* 1: go on; 0: the end. */
static int obey(struct kernel *k, struct view line, struct err *e)
{
	osb_cleanup(json_freep) struct json *message = NULL;
	struct view op = VIEW("");
	int r;

	if (json_parse(line, 0, &message, e) < 0)
		return e->code;
	(void)json_str(json_get(message, "op"), &op);
	if (view_is(op, "exit"))
		return 0;
	r = view_is(op, "run") ? run(k, message, e) : 0;
	return r < 0 ? r : 1;
}

static int read_orders(struct kernel *k, struct err *e)
{
	char *room = buf_reserve(&k->in, 65536);
	ssize_t n = room ? read(k->channel, room, 65536) : -1;
	int r = 1;

	if (!room)
		return err_set(e, -E2BIG, "the run is too long");
	if (n <= 0)
		return n < 0 && errno == EINTR ? 1 : 0;
	buf_commit(&k->in, (size_t)n);
	while (r > 0) {
		struct view all = buf_view(&k->in);
		size_t len = view_find(all, '\n');

		if (len == all.len)
			break;
		r = obey(k, view_first(all, len), e);
		buf_consume(&k->in, len + 1);
	}
	return r;
}

static void interrupt(struct kernel *k)
{
	struct err ignored = ERR_NONE; /* execd sends another, and ends us if that is no use */
	char id[RAND_HEX_LEN + 1];

	interrupts = 0;
	if (!k->run_id)
		return;
	if (k->by_message)
		(void)!kernel_link_send(&k->link, KERNEL_CONTROL, "interrupt_request", VIEW("{}"),
					id, &ignored);
	else
		(void)kill(-k->link.pid, SIGINT); /* it may be gone already */
}

/* ---- the process ---- */

enum { POLL_EXECD = KERNEL_CHANNELS_, POLL_KERNEL, POLLS_ };

static int wait_for(struct kernel *k, int timeout_ms, struct pollfd polled[POLLS_])
{
	const struct timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
	sigset_t none;

	sigemptyset(&none);
	for (int c = 0; c < KERNEL_CHANNELS_; c++)
		polled[c] = (struct pollfd){.fd = k->link.fds[c], .events = POLLIN};
	polled[POLL_EXECD] = (struct pollfd){.fd = k->ready ? k->channel : -1, .events = POLLIN};
	polled[POLL_KERNEL] = (struct pollfd){.fd = k->link.pidfd, .events = POLLIN};
	/* SIGINT comes only in here. */
	return ppoll(polled, POLLS_, timeout_ms < 0 ? NULL : &timeout, &none);
}

static int hear_all(struct kernel *k, const struct pollfd polled[POLLS_], struct err *e)
{
	/* What was printed before the answer comes before it. */
	static const enum kernel_channel order[] = {KERNEL_IOPUB, KERNEL_SHELL, KERNEL_CONTROL};

	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		if (polled[order[i]].revents && hear(k, order[i], e) < 0)
			return e->code;
	return 0;
}

/* Asks who the kernel is until its answer has come and what it publishes is heard. */
static int greet(struct kernel *k, struct err *e)
{
	uint64_t until = clock_mono_us() + READY_US;
	struct pollfd polled[POLLS_];

	while (!k->idle || !k->replied) {
		char id[RAND_HEX_LEN + 1];
		int n;

		if (kernel_link_send(&k->link, KERNEL_SHELL, "kernel_info_request", VIEW("{}"), id,
				     e) < 0)
			return e->code;
		do {
			n = wait_for(k, GREET_MS, polled);
			if (n > 0 && polled[POLL_KERNEL].revents)
				return err_set(e, -ECHILD, "the kernel ended before it was ready");
			if (n > 0 && hear_all(k, polled, e) < 0)
				return e->code;
		} while (n > 0 && !(k->idle && k->replied));
		if (clock_mono_us() > until)
			return err_set(e, -ETIMEDOUT, "the kernel does not answer");
	}
	return 0;
}

/* As the kernel ended, so do we: execd tells its client. */
static int kernel_exit_code(const struct kernel *k)
{
	int status = 0;

	if (spawn_reap(k->link.pidfd, &status) < 0)
		return EXIT_FAILURE;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int serve(struct kernel *k)
{
	struct pollfd polled[POLLS_];
	struct err e = ERR_NONE;

	for (;;) {
		int n = wait_for(k, -1, polled), r = 1;

		if (interrupts)
			interrupt(k);
		if (n < 0)
			continue;
		if (hear_all(k, polled, &e) < 0 && !polled[POLL_KERNEL].revents) {
			/* Its sockets close a moment before it has ended. */
			struct pollfd end = {.fd = k->link.pidfd, .events = POLLIN};

			(void)poll(&end, 1, EXIT_MS);
			return kernel_exit_code(k);
		}
		if (polled[POLL_KERNEL].revents)
			return kernel_exit_code(k);
		if (polled[POLL_EXECD].revents)
			r = read_orders(k, &e);
		if (r <= 0)
			return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	}
}

/* Gives the kernel a moment to end as it likes. */
static void say_goodbye(struct kernel *k)
{
	struct pollfd end = {.fd = k->link.pidfd, .events = POLLIN};
	struct err ignored = ERR_NONE; /* it is killed if it stays */
	char id[RAND_HEX_LEN + 1];

	if (kernel_link_send(&k->link, KERNEL_CONTROL, "shutdown_request",
			     VIEW("{\"restart\":false}"), id, &ignored) == 0)
		(void)poll(&end, 1, EXIT_MS);
}

static int start(struct kernel *k, const char *language, struct err *e)
{
	osb_cleanup(mem_freep) char *dir = NULL;
	struct strv env = STRV_INIT;
	struct code_kernelspec spec;
	int r;

	strv_copy(&env, environ);
	dir = code_kernelspec_find(view_of(language), &env);
	strv_done(&env);
	if (!dir)
		return err_set(e, -ENOENT, "no kernel for '%s' any more", language);
	if (code_kernelspec_load(dir, &spec, e) < 0)
		return e->code;
	k->by_message = spec.interrupt_by_message;
	r = kernel_link_open(&spec, dir, &k->link, e);
	code_kernelspec_done(&spec);
	return r < 0 ? r : greet(k, e);
}

/* Interrupts are noticed where we wait and nowhere else; the kernel does not inherit that. */
static void set_signals(void)
{
	struct sigaction sa = {.sa_handler = on_interrupt};
	sigset_t blocked;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	sigaction(SIGINT, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static int take_channel(void)
{
	const char *number = getenv("OPENSANDBOX_DRIVER_FD");
	uint64_t fd;
	int high = -1;

	if (number && num_parse_u64(view_of(number), &fd) && fd < INT_MAX)
		high = fcntl((int)fd, F_DUPFD_CLOEXEC, CHANNEL_MIN_FD);
	if (high >= 0)
		close((int)fd);
	unsetenv("OPENSANDBOX_DRIVER_FD");
	return high;
}

int code_kernel_main(const char *language)
{
	struct kernel k = {.link = {.pid = -1, .pidfd = -1, .fds = {-1, -1, -1}}};
	struct err e = ERR_NONE;
	int code = EXIT_FAILURE;

	k.channel = take_channel();
	if (k.channel < 0)
		return EXIT_FAILURE;
	k.in = BUF_INIT(LINE_MAX_BYTES);
	set_signals();
	if (start(&k, language, &e) < 0) {
		send_text(&k, "failed", "message", view_of(e.msg));
	} else {
		send_text(&k, "ready", "version", view_of(k.version));
		k.ready = true;
		code = serve(&k);
		if (code == EXIT_SUCCESS)
			say_goodbye(&k);
	}
	kernel_link_close(&k.link);
	buf_done(&k.in);
	free(k.run_id);
	free(k.version);
	return code;
}

/* ---- for the daemon ---- */

const struct code_language *code_kernel_language(struct view language, const struct strv *env)
{
	static const char *const programs[] = {"/proc/self/exe", NULL};
	static struct code_language *rows[LANGUAGES_MAX]; /* they live as long as we do */
	osb_cleanup(mem_freep) char *dir = code_kernelspec_find(language, env);
	size_t n = 0;

	if (!dir)
		return NULL;
	for (; n < LANGUAGES_MAX && rows[n]; n++)
		if (view_is(language, rows[n]->name))
			return rows[n];
	if (n == LANGUAGES_MAX)
		return NULL;
	rows[n] = mem_new(struct code_language);
	rows[n]->name = mem_strndup(language.p, language.len);
	rows[n]->programs = programs;
	rows[n]->args = mem_new_array(const char *, 3);
	((const char **)rows[n]->args)[0] = CODE_KERNEL_ARG;
	((const char **)rows[n]->args)[1] = rows[n]->name;
	rows[n]->install = "a Jupyter kernel for it";
	return rows[n];
}
