/*
 * sdk/sandbox_metrics.c - does it answer, and what does it use?
 */
#include <opensandbox/sandbox.h>
#include <string.h>

#include "base/err.h"
#include "codec/json.h"
#include "sdk/document.h"
#include "sdk/fail.h"
#include "sdk/sandbox_int.h"
#include "sdk/stream.h"

int osb_sandbox_ping(osb_sandbox *s, const osb_call *call, osb_error *e)
{
	struct asking q;
	int r = asking_exec(s, OSB_PORT_EXEC, "GET", "/ping", call, &q, e);

	if (r == 0)
		r = asking_do(s->client, &q, call, e);
	asking_done(&q);
	return r;
}

static double number(const struct json *v, const char *key)
{
	double n = 0;

	(void)json_number(json_get(v, key), &n);
	return n;
}

static void read_metrics(const struct json *v, osb_metrics *ret)
{
	*ret = (osb_metrics){
		.cpu_count = number(v, "cpu_count"),
		.cpu_used_percent = number(v, "cpu_used_pct"),
		.memory_total_mib = number(v, "mem_total_mib"),
		.memory_used_mib = number(v, "mem_used_mib"),
		.timestamp_ms = document_int(v, "timestamp"),
	};
}

int osb_sandbox_metrics(osb_sandbox *s, const osb_call *call, osb_metrics *ret, osb_error *e)
{
	struct document d;
	struct asking q;
	int r = asking_exec(s, OSB_PORT_EXEC, "GET", "/metrics", call, &q, e);

	if (r == 0) {
		q.ask.target = buf_view(&q.target);
		r = document_ask(s->client, &q.ask, call, &d, e);
	}
	if (r == 0) {
		read_metrics(d.json, ret);
		document_done(&d);
	}
	asking_done(&q);
	return r;
}

struct watch {
	osb_metrics_fn *fn;
	void *arg;
};

static int on_sample(void *arg, const struct json *event)
{
	struct watch *w = arg;
	osb_metrics m;

	if (!json_get(event, "cpu_count"))
		return 0; /* a sample that could not be taken */
	read_metrics(event, &m);
	return w->fn(w->arg, &m);
}

int osb_sandbox_watch_metrics(osb_sandbox *s, osb_metrics_fn *fn, void *arg, const osb_call *call,
			      osb_error *e)
{
	struct watch w = {fn, arg};
	struct asking q;
	int r = asking_exec(s, OSB_PORT_EXEC, "GET", "/metrics/watch", call, &q, e);

	if (r == 0)
		r = stream_events(s, &q, on_sample, &w, call, e);
	asking_done(&q);
	return r;
}
