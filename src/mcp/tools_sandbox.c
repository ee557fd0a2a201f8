/*
 * mcp/tools_sandbox.c - sandboxes: made, found, looked at, ended.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "codec/json.h"
#include "codec/json_copy.h"
#include "mcp/call.h"
#include "mcp/mcp.h"
#include "mcp/registry.h"
#include "mcp/tools.h"

#define YEAR_S	  31536000
#define PAUSE_MAX 60000

/* ---- shapes ---- */

static const struct shape status_members[] = {
	{"state", SHAPE_STRING, SHAPE_NEEDED, NULL, "Running, Paused, Pending, Failed, ...", 0, 0,
	 NULL},
	{"reason", SHAPE_STRING, 0, NULL, NULL, 0, 0, NULL},
	{"message", SHAPE_STRING, 0, NULL, NULL, 0, 0, NULL},
	{"last_transition_at", SHAPE_STRING, 0, NULL, NULL, 0, 0, NULL},
	SHAPE_END,
};

static const struct shape image_members[] = {
	{"image", SHAPE_STRING, SHAPE_NEEDED, NULL, "Reference of the image.", 0, 0, NULL},
	SHAPE_END,
};

const struct shape shape_info[] = {
	{"id", SHAPE_STRING, SHAPE_NEEDED, NULL, "Id of the sandbox.", 0, 0, NULL},
	{"status", SHAPE_OBJECT, SHAPE_NEEDED | SHAPE_OPEN, NULL, NULL, 0, 0, status_members},
	{"entrypoint", SHAPE_STRINGS, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	{"expires_at", SHAPE_STRING, 0, NULL, "When it ends by itself; null = never.", 0, 0, NULL},
	{"created_at", SHAPE_STRING, 0, NULL, NULL, 0, 0, NULL},
	{"image", SHAPE_OBJECT, SHAPE_OPEN, NULL, NULL, 0, 0, image_members},
	{"snapshot_id", SHAPE_STRING, 0, NULL, NULL, 0, 0, NULL},
	{"platform", SHAPE_ANY, 0, NULL, NULL, 0, 0, NULL},
	{"metadata", SHAPE_MAP, 0, NULL, NULL, 0, 0, NULL},
	SHAPE_END,
};

static const struct shape rule_members[] = {
	{"action", SHAPE_STRING, SHAPE_NEEDED, NULL, "\"allow\" or \"deny\".", 0, 0, NULL},
	{"target", SHAPE_STRING, SHAPE_NEEDED, NULL,
	 "A domain (\"pypi.org\", \"*.example.com\") or a network (\"203.0.113.0/24\").", 0, 0,
	 NULL},
	SHAPE_END,
};

static const struct shape policy_members[] = {
	{"default_action", SHAPE_STRING, 0, "\"deny\"", "For what no rule names.", 0, 0, NULL},
	{"egress", SHAPE_OBJECTS, SHAPE_OPEN, NULL, "Rules; the first that fits counts.", 0, 0,
	 rule_members},
	SHAPE_END,
};

static const struct shape create_input[] = {
	{"image", SHAPE_STRING, SHAPE_NEEDED, NULL,
	 "Image to start from, like \"python:3.11\" or \"opensandbox/code-interpreter:latest\" "
	 "(for code_run).",
	 0, 0, NULL},
	{"auth_username", SHAPE_STRING, 0, NULL, "User at the image's registry.", 0, 0, NULL},
	{"auth_password", SHAPE_STRING, 0, NULL, "Password or token for it.", 0, 0, NULL},
	{"timeout_seconds", SHAPE_NUMBER, 0, "600", "The sandbox ends by itself after so long.", 1,
	 YEAR_S, NULL},
	{"ready_timeout_seconds", SHAPE_NUMBER, 0, "30", "How long to wait until it answers.", 1,
	 YEAR_S, NULL},
	{"health_check_polling_interval_ms", SHAPE_INT, 0, "200", "Pause between two looks.", 1,
	 PAUSE_MAX, NULL},
	{"skip_health_check", SHAPE_BOOL, 0, "false", "Do not wait until it answers.", 0, 0, NULL},
	{"env", SHAPE_MAP, 0, NULL, "Environment variables.", 0, 0, NULL},
	{"metadata", SHAPE_MAP, 0, NULL, "Labels that sandbox_list can filter by.", 0, 0, NULL},
	{"resource", SHAPE_MAP, 0, NULL, "Limits, like {\"cpu\": \"1\", \"memory\": \"2Gi\"}.", 0,
	 0, NULL},
	{"network_policy", SHAPE_OBJECT, SHAPE_OPEN, NULL, "What it may reach.", 0, 0,
	 policy_members},
	{"extensions", SHAPE_MAP, 0, NULL, "Passed to the server as they are.", 0, 0, NULL},
	{"entrypoint", SHAPE_STRINGS, 0, NULL, "Program to start instead of one that waits.", 0, 0,
	 NULL},
	SHAPE_END,
};

static const struct shape connect_input[] = {
	SHAPE_SANDBOX_ID,
	{"connect_timeout_seconds", SHAPE_NUMBER, 0, "30", "How long to wait until it answers.", 1,
	 YEAR_S, NULL},
	{"health_check_polling_interval_ms", SHAPE_INT, 0, "200", "Pause between two looks.", 1,
	 PAUSE_MAX, NULL},
	{"skip_health_check", SHAPE_BOOL, 0, "false", "Do not wait until it answers.", 0, 0, NULL},
	SHAPE_END,
};

static const struct shape made_output[] = {
	{"sandbox_id", SHAPE_STRING, SHAPE_NEEDED, NULL, "For the other tools.", 0, 0, NULL},
	{"info", SHAPE_OBJECT, SHAPE_NEEDED | SHAPE_OPEN, NULL, NULL, 0, 0, shape_info},
	SHAPE_END,
};

static const struct shape id_input[] = {SHAPE_SANDBOX_ID, SHAPE_END};
static const struct shape box_input[] = {SHAPE_SANDBOX_ID, SHAPE_CONNECT, SHAPE_END};

static const struct shape filter_members[] = {
	{"states", SHAPE_STRINGS, 0, NULL, "Only those in one of these states.", 0, 0, NULL},
	{"metadata", SHAPE_MAP, 0, NULL, "Only those with all of these labels.", 0, 0, NULL},
	{"page", SHAPE_INT, 0, NULL, "From 1 on.", 1, 1000000, NULL},
	{"page_size", SHAPE_INT, 0, NULL, "At most so many.", 1, 200, NULL},
	SHAPE_END,
};

static const struct shape list_input[] = {
	{"filter", SHAPE_OBJECT, 0, NULL, NULL, 0, 0, filter_members},
	SHAPE_END,
};

static const struct shape pagination_members[] = {
	{"page", SHAPE_INT, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	{"page_size", SHAPE_INT, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	{"total_items", SHAPE_INT, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	{"total_pages", SHAPE_INT, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	{"has_next_page", SHAPE_BOOL, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	SHAPE_END,
};

static const struct shape list_output[] = {
	{"sandbox_infos", SHAPE_OBJECTS, SHAPE_NEEDED | SHAPE_OPEN, NULL, NULL, 0, 0, shape_info},
	{"pagination", SHAPE_OBJECT, SHAPE_NEEDED | SHAPE_OPEN, NULL, NULL, 0, 0,
	 pagination_members},
	SHAPE_END,
};

static const struct shape renew_input[] = {
	SHAPE_SANDBOX_ID,
	{"timeout_seconds", SHAPE_NUMBER, SHAPE_NEEDED, NULL, "It ends so long from now.", 1,
	 YEAR_S, NULL},
	SHAPE_END,
};

static const struct shape renew_output[] = {
	{"expires_at", SHAPE_STRING, SHAPE_NEEDED, NULL, "When it ends (RFC 3339).", 0, 0, NULL},
	SHAPE_END,
};

static const struct shape metrics_output[] = {
	{"cpu_count", SHAPE_NUMBER, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	{"cpu_used_percentage", SHAPE_NUMBER, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	{"memory_total_in_mib", SHAPE_NUMBER, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	{"memory_used_in_mib", SHAPE_NUMBER, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	{"timestamp", SHAPE_INT, SHAPE_NEEDED, NULL, "Unix milliseconds.", 0, 0, NULL},
	SHAPE_END,
};

static const struct shape health_output[] = {
	{"sandbox_id", SHAPE_STRING, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	{"healthy", SHAPE_BOOL, SHAPE_NEEDED, NULL, "Does it answer?", 0, 0, NULL},
	SHAPE_END,
};

static const struct shape endpoint_input[] = {
	SHAPE_SANDBOX_ID,
	{"port", SHAPE_INT, SHAPE_NEEDED, NULL, "A port that a program in it listens on.", 1, 65535,
	 NULL},
	SHAPE_CONNECT,
	SHAPE_END,
};

static const struct shape endpoint_output[] = {
	{"endpoint", SHAPE_STRING, SHAPE_NEEDED, NULL, "Host, port and path, without a scheme.", 0,
	 0, NULL},
	{"headers", SHAPE_MAP, SHAPE_NEEDED, NULL, "To be sent with every request.", 0, 0, NULL},
	SHAPE_END,
};

/* ---- making and finding ---- */

void put_info(struct json_writer *w, const osb_sandbox_info *i)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	struct err e = ERR_NONE;

	if (json_parse(view_of(i->json), 0, &v, &e) < 0)
		v = NULL;
	json_write_object(w);
	json_put_cstr(w, "id", i->id);
	json_write_key(w, "status");
	json_write_object(w);
	json_put_cstr(w, "state", i->state);
	put_text(w, "reason", i->reason);
	put_text(w, "message", i->message);
	json_write_key(w, "last_transition_at");
	json_write_json(w, json_get(json_get(v, "status"), "lastTransitionAt"));
	json_write_object_end(w);
	json_write_key(w, "entrypoint");
	json_write_array(w);
	for (const char *const *word = i->entrypoint; word && *word; word++)
		json_write_cstr(w, *word);
	json_write_array_end(w);
	put_text(w, "expires_at", i->expires_at);
	put_text(w, "created_at", i->created_at);
	json_write_key(w, "image");
	if (i->image) {
		json_write_object(w);
		json_put_cstr(w, "image", i->image);
		json_write_object_end(w);
	} else {
		json_write_null(w);
	}
	put_text(w, "snapshot_id", i->snapshot_id);
	json_write_key(w, "platform");
	json_write_json(w, json_get(v, "platform"));
	json_write_key(w, "metadata");
	json_write_object(w);
	for (size_t n = 0; n < i->metadata_n; n++)
		json_put_cstr(w, i->metadata[n].name, i->metadata[n].value);
	json_write_object_end(w);
	json_write_object_end(w);
}

static void pause_ms(const struct call *c, uint64_t ms)
{
	uint64_t until = clock_mono_us() + ms * 1000, now;

	while (!atomic_load(&c->cancelled) && (now = clock_mono_us()) < until) {
		uint64_t us = MIN(until - now, (uint64_t)50000);
		struct timespec t = {.tv_nsec = (long)us * 1000};

		(void)nanosleep(&t, NULL);
	}
}

/* Has it ended?  Then waiting is no use. */
static bool has_ended(struct call *c, osb_sandbox *s)
{
	osb_sandbox_info *info = NULL;
	bool ended = false;

	if (osb_sandbox_get(s, &c->how, &info, &c->e) < 0)
		return c->e.code == OSB_ERR_NOT_FOUND || c->e.code == OSB_ERR_UNAUTHORIZED;
	ended = strcmp(info->state, "Failed") == 0 || strcmp(info->state, "Terminated") == 0;
	if (ended)
		call_fail(c, "The sandbox has ended: %s %s", info->state,
			  info->message ? info->message : "");
	osb_sandbox_info_free(info);
	return ended;
}

static int wait_ready(struct call *c, osb_sandbox *s, double timeout_s)
{
	uint64_t until = clock_mono_us() + (uint64_t)(timeout_s * 1e6);
	uint64_t every = (uint64_t)arg_int(c->args, "health_check_polling_interval_ms", 200);

	if (arg_bool(c, "skip_health_check", false))
		return 0;
	while (osb_sandbox_ping(s, &c->how, &c->e) < 0) {
		if (has_ended(c, s))
			return c->why[0] ? -1 : call_fail_osb(c);
		if (atomic_load(&c->cancelled) || clock_mono_us() > until)
			return call_fail(c, "The sandbox does not answer yet. Try sandbox_connect "
					    "with a longer timeout.");
		pause_ms(c, every);
	}
	return 0;
}

/* Connected from now on; `s` is taken. */
static int register_and_show(struct call *c, osb_sandbox *s)
{
	osb_sandbox_info *info = NULL;
	int r;

	c->box = registry_add(c->mcp->registry, s);
	if (!c->box)
		return call_fail(c, "Too many sandboxes are connected: end some with "
				    "sandbox_kill.");
	s = registry_sandbox(c->box);
	r = call_check(c, osb_sandbox_get(s, &c->how, &info, &c->e));
	if (r < 0)
		return r;
	json_write_object(&c->w);
	json_put_cstr(&c->w, "sandbox_id", osb_sandbox_id(s));
	json_write_key(&c->w, "info");
	put_info(&c->w, info);
	json_write_object_end(&c->w);
	osb_sandbox_info_free(info);
	return 0;
}

/* The policy in the server's names; NULL = none. */
static char *policy_text(struct call *c)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(MCP_MESSAGE_MAX);
	const struct json *policy = json_get(c->args, "network_policy"), *value;
	bool has_default = false;
	struct json_writer w;
	struct view key;
	void *it = NULL;

	if (!policy)
		return NULL;
	json_writer_init(&w, &text);
	json_write_object(&w);
	while (json_next(policy, &it, &key, &value)) {
		if (view_is(key, "default_action") || view_is(key, "defaultAction")) {
			has_default = true;
			key = VIEW("defaultAction");
		}
		json_write_key_view(&w, key);
		json_write_json(&w, value);
	}
	if (!has_default)
		json_put_cstr(&w, "defaultAction", "deny");
	json_write_object_end(&w);
	return json_writer_end(&w) < 0 ? NULL : arena_str(&c->arena, buf_view(&text));
}

static int sandbox_create(struct call *c)
{
	osb_create what = OSB_CREATE_INIT;
	osb_sandbox *s = NULL;

	what.image = arg_str(c, "image", NULL);
	what.image_username = arg_str(c, "auth_username", NULL);
	what.image_password = arg_str(c, "auth_password", NULL);
	if (!what.image_username != !what.image_password)
		return call_fail(c, "auth_username and auth_password belong together: give both "
				    "or none.");
	what.timeout_s = (int64_t)arg_number(c->args, "timeout_seconds", 600);
	what.env = arg_pairs(c, c->args, "env", &what.env_n);
	what.metadata = arg_pairs(c, c->args, "metadata", &what.metadata_n);
	what.resource_limits = arg_pairs(c, c->args, "resource", &what.resource_limits_n);
	what.extensions = arg_pairs(c, c->args, "extensions", &what.extensions_n);
	what.entrypoint = arg_strings(c, c->args, "entrypoint");
	what.network_policy = policy_text(c);
	what.skip_ready = true; /* it is waited for below, as often as the caller wants */
	c->how.timeout_ms =
		(uint32_t)(MIN(arg_number(c->args, "ready_timeout_seconds", 30), 86400.0) * 1000);
	call_progress(c, "Creating the sandbox", CALL_PROGRESS_ALWAYS);
	if (call_check(c, osb_sandbox_create(c->mcp->client, &what, &c->how, &s, &c->e)) < 0)
		return -1;
	c->how.timeout_ms = 0;
	call_progress(c, "Waiting until it answers", CALL_PROGRESS_ALWAYS);
	if (wait_ready(c, s, arg_number(c->args, "ready_timeout_seconds", 30)) < 0) {
		(void)osb_sandbox_kill(s, NULL, NULL);
		osb_sandbox_free(s);
		return -1;
	}
	return register_and_show(c, s);
}

static int sandbox_connect(struct call *c)
{
	osb_sandbox *s = NULL;

	if (call_check(c, osb_sandbox_open(c->mcp->client, arg_str(c, "sandbox_id", ""), &s,
					   &c->e)) < 0)
		return -1;
	if (wait_ready(c, s, arg_number(c->args, "connect_timeout_seconds", 30)) < 0) {
		osb_sandbox_free(s);
		return -1;
	}
	return register_and_show(c, s);
}

static int sandbox_kill(struct call *c)
{
	osb_sandbox *s = call_any_sandbox(c);

	if (!s)
		return -1;
	registry_forget(c->mcp->registry, osb_sandbox_id(s));
	if (call_check(c, osb_sandbox_kill(s, &c->how, &c->e)) < 0)
		return -1;
	return call_status(c, "killed");
}

static int sandbox_get_info(struct call *c)
{
	osb_sandbox *s = call_any_sandbox(c);
	osb_sandbox_info *info = NULL;

	if (!s || call_check(c, osb_sandbox_get(s, &c->how, &info, &c->e)) < 0)
		return -1;
	put_info(&c->w, info);
	osb_sandbox_info_free(info);
	return 0;
}

static int sandbox_list(struct call *c)
{
	const struct json *filter = json_get(c->args, "filter");
	struct json_writer *w = &c->w;
	osb_sandbox_page *page = NULL;
	osb_list what = {0};

	what.states = arg_strings(c, filter, "states");
	what.metadata = arg_pairs(c, filter, "metadata", &what.metadata_n);
	what.page = (int)arg_int(filter, "page", 0);
	what.page_size = (int)arg_int(filter, "page_size", 0);
	if (call_check(c, osb_sandbox_list(c->mcp->client, &what, &c->how, &page, &c->e)) < 0)
		return -1;
	json_write_object(w);
	json_write_key(w, "sandbox_infos");
	json_write_array(w);
	for (size_t i = 0; i < page->items_n; i++)
		put_info(w, page->items[i]);
	json_write_array_end(w);
	json_write_key(w, "pagination");
	json_write_object(w);
	json_put_int(w, "page", page->page);
	json_put_int(w, "page_size", page->page_size);
	json_put_int(w, "total_items", page->total_items);
	json_put_int(w, "total_pages", page->total_pages);
	json_put_bool(w, "has_next_page", page->has_next);
	json_write_object_end(w);
	json_write_object_end(w);
	osb_sandbox_page_free(page);
	return 0;
}

static int sandbox_renew(struct call *c)
{
	int64_t seconds = (int64_t)arg_number(c->args, "timeout_seconds", 0);
	osb_sandbox *s = call_any_sandbox(c);
	char *expires = NULL;

	if (!s || call_check(c, osb_sandbox_renew(s, seconds, &c->how, &expires, &c->e)) < 0)
		return -1;
	json_write_object(&c->w);
	json_put_cstr(&c->w, "expires_at", expires);
	json_write_object_end(&c->w);
	osb_free(expires);
	return 0;
}

/* ---- looking ---- */

static int sandbox_get_metrics(struct call *c)
{
	osb_sandbox *s = call_sandbox(c);
	osb_metrics m;

	if (!s || call_check(c, osb_sandbox_metrics(s, &c->how, &m, &c->e)) < 0)
		return -1;
	json_write_object(&c->w);
	put_number(&c->w, "cpu_count", m.cpu_count);
	put_number(&c->w, "cpu_used_percentage", m.cpu_used_percent);
	put_number(&c->w, "memory_total_in_mib", m.memory_total_mib);
	put_number(&c->w, "memory_used_in_mib", m.memory_used_mib);
	json_put_int(&c->w, "timestamp", m.timestamp_ms);
	json_write_object_end(&c->w);
	return 0;
}

static int sandbox_healthcheck(struct call *c)
{
	osb_sandbox *s = call_sandbox(c);

	if (!s)
		return -1;
	json_write_object(&c->w);
	json_put_cstr(&c->w, "sandbox_id", osb_sandbox_id(s));
	json_put_bool(&c->w, "healthy", osb_sandbox_ping(s, &c->how, &c->e) == 0);
	json_write_object_end(&c->w);
	return 0;
}

static int sandbox_get_endpoint(struct call *c)
{
	uint16_t port = (uint16_t)arg_int(c->args, "port", 0);
	osb_sandbox *s = call_sandbox(c);
	osb_endpoint *p = NULL;

	if (!s || call_check(c, osb_sandbox_endpoint(s, port, 0, &c->how, &p, &c->e)) < 0)
		return -1;
	json_write_object(&c->w);
	json_put_cstr(&c->w, "endpoint", p->endpoint);
	json_write_key(&c->w, "headers");
	json_write_object(&c->w);
	for (size_t i = 0; i < p->headers_n; i++)
		json_put_cstr(&c->w, p->headers[i].name, p->headers[i].value);
	json_write_object_end(&c->w);
	json_write_object_end(&c->w);
	osb_endpoint_free(p);
	return 0;
}

const struct tool tools_sandbox[] = {
	{"sandbox_create", "Create a sandbox",
	 "Creates an isolated sandbox from an image, waits until it answers and connects to it. "
	 "Its sandbox_id is what the other tools want.",
	 create_input, made_output, 0, sandbox_create},
	{"sandbox_connect", "Connect to a sandbox",
	 "Connects to a sandbox that exists already, so that commands and files can be used.",
	 connect_input, made_output, TOOL_IDEMPOTENT, sandbox_connect},
	{"sandbox_kill", "End a sandbox",
	 "Ends a sandbox for good; everything in it is lost unless a snapshot was taken.", id_input,
	 shape_status, TOOL_DESTROYS, sandbox_kill},
	{"sandbox_get_info", "Describe a sandbox", "State, image, times and labels of a sandbox.",
	 id_input, shape_info, TOOL_READS, sandbox_get_info},
	{"sandbox_list", "List sandboxes", "The server's sandboxes, a page at a time.", list_input,
	 list_output, TOOL_READS, sandbox_list},
	{"sandbox_renew", "Give a sandbox more time",
	 "Sets when a sandbox ends by itself: so many seconds from now.", renew_input, renew_output,
	 0, sandbox_renew},
	{"sandbox_get_metrics", "Usage of a sandbox", "CPU and memory that a sandbox has and uses.",
	 box_input, metrics_output, TOOL_READS, sandbox_get_metrics},
	{"sandbox_healthcheck", "Does a sandbox answer?", "Asks a sandbox whether it is well.",
	 box_input, health_output, TOOL_READS, sandbox_healthcheck},
	{"sandbox_get_endpoint", "Address of a port",
	 "Where a port of a sandbox can be reached from outside, and the headers to send.",
	 endpoint_input, endpoint_output, TOOL_READS, sandbox_get_endpoint},
	{NULL, NULL, NULL, NULL, NULL, 0, NULL},
};
