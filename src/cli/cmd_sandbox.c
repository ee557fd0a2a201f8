/*
 * cli/cmd_sandbox.c - osb sandbox ...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/num.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/config_file.h"
#include "cli/progress.h"
#include "cli/show.h"
#include "codec/json.h"
#include "codec/json_copy.h"
#include "codec/json_writer.h"
#include "codec/rfc3339.h"

#define COLUMNS "id status.state:STATUS image.image:IMAGE created_at expires_at"

/* ---- objects ---- */

static void put_json(struct json_writer *w, const char *key, const struct json *v)
{
	json_write_key(w, key);
	json_write_json(w, v);
}

static void put_metadata(struct json_writer *w, const osb_sandbox_info *i)
{
	json_write_key(w, "metadata");
	json_write_object(w);
	for (size_t n = 0; n < i->metadata_n; n++)
		json_put_cstr(w, i->metadata[n].name, i->metadata[n].value);
	json_write_object_end(w);
}

static void put_image(struct json_writer *w, const osb_sandbox_info *i)
{
	json_write_key(w, "image");
	if (!i->image) {
		json_write_null(w);
		return;
	}
	json_write_object(w);
	json_put_cstr(w, "image", i->image);
	put_text(w, "auth", NULL);
	json_write_object_end(w);
}

/* As Python's SDK would. */
static void put_info(struct json_writer *w, const osb_sandbox_info *i)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	struct err e = ERR_NONE;
	struct view changed = VIEW_NONE;
	osb_cleanup(mem_freep) char *when = NULL;

	if (json_parse(view_of(i->json), 0, &v, &e) < 0)
		v = NULL;
	if (json_str(json_get(json_get(v, "status"), "lastTransitionAt"), &changed))
		when = mem_strndup(changed.p, changed.len);
	json_write_object(w);
	json_put_cstr(w, "id", i->id);
	json_write_key(w, "status");
	json_write_object(w);
	json_put_cstr(w, "state", i->state);
	put_text(w, "reason", i->reason);
	put_text(w, "message", i->message);
	put_time(w, "last_transition_at", when);
	json_write_object_end(w);
	json_write_key(w, "entrypoint");
	json_write_array(w);
	for (const char *const *it = i->entrypoint; it && *it; it++)
		json_write_cstr(w, *it);
	json_write_array_end(w);
	put_time(w, "expires_at", i->expires_at);
	put_time(w, "created_at", i->created_at);
	put_image(w, i);
	put_text(w, "snapshot_id", i->snapshot_id);
	put_json(w, "platform", json_get(v, "platform"));
	put_json(w, "allocation", json_get(v, "allocation"));
	put_metadata(w, i);
	put_json(w, "extensions", json_get(v, "extensions"));
	json_write_object_end(w);
}

/* ---- create ---- */

struct creation {
	osb_create what;
	osb_pair *env, *metadata, *extensions, *resources;
	size_t env_n, metadata_n, extensions_n, resources_n;
	const char **entrypoint;
	char *policy, *volumes, *image, *timeout;
};

static void creation_done(struct creation *n)
{
	cli_pairs_free(n->env, n->env_n);
	cli_pairs_free(n->metadata, n->metadata_n);
	cli_pairs_free(n->extensions, n->extensions_n);
	cli_pairs_free(n->resources, n->resources_n);
	free(n->entrypoint);
	free(n->policy);
	free(n->volumes);
	free(n->image);
	free(n->timeout);
}

static int read_lists(struct cli *c, struct creation *n)
{
	size_t count = 0;

	if (!(n->env = cli_pairs(c, "env", &n->env_n)) ||
	    !(n->metadata = cli_pairs(c, "metadata", &n->metadata_n)) ||
	    !(n->extensions = cli_pairs(c, "extension", &n->extensions_n)) ||
	    !(n->resources = cli_pairs(c, "resource", &n->resources_n)))
		return CLI_USAGE;
	n->what.env = n->env_n ? n->env : NULL;
	n->what.env_n = n->env_n;
	n->what.metadata = n->metadata_n ? n->metadata : NULL;
	n->what.metadata_n = n->metadata_n;
	n->what.extensions = n->extensions_n ? n->extensions : NULL;
	n->what.extensions_n = n->extensions_n;
	n->what.resource_limits = n->resources_n ? n->resources : NULL;
	n->what.resource_limits_n = n->resources_n;
	n->entrypoint = mem_zero(c->given_n + 1, sizeof(char *));
	while ((n->entrypoint[count] = cli_flag_nth(c, "entrypoint", count)))
		count++;
	n->what.entrypoint = count ? n->entrypoint : NULL;
	return 0;
}

static int read_times(struct cli *c, struct creation *n)
{
	const char *timeout = cli_flag(c, "timeout"), *ready = cli_flag(c, "ready-timeout");
	int64_t s;

	if (!timeout)
		timeout = n->timeout = config_file_get(c, "defaults", "timeout");
	if (timeout && strcmp(timeout, "none") == 0)
		n->what.timeout_s = OSB_NEVER;
	else if (timeout && !cli_duration(timeout, &n->what.timeout_s))
		return cli_usage(c, "--timeout: '%s' is no duration like 10m, 1h30m or 'none'",
				 timeout);
	if (ready && !cli_duration(ready, &s))
		return cli_usage(c, "--ready-timeout: '%s' is no duration like 30s", ready);
	n->what.ready_timeout_ms = ready ? (uint32_t)(s * 1000) : 0;
	n->what.skip_ready = cli_has(c, "skip-health-check");
	return 0;
}

static int read_creation(struct cli *c, struct creation *n)
{
	const char *policy = cli_flag(c, "network-policy-file");
	const char *volumes = cli_flag(c, "volumes-file");
	int r = read_lists(c, n);

	if (r == 0)
		r = read_times(c, n);
	if (r)
		return r;
	n->what.snapshot_id = cli_flag(c, "snapshot-id");
	n->what.image = cli_flag(c, "image");
	if (!n->what.image && !n->what.snapshot_id)
		n->what.image = n->image = config_file_get(c, "defaults", "image");
	if (!n->what.image && !n->what.snapshot_id)
		return cli_usage(c, "name an image with --image, or a snapshot with --snapshot-id");
	n->what.image_username = cli_flag(c, "image-auth-username");
	n->what.image_password = cli_flag(c, "image-auth-password");
	n->what.credential_proxy = cli_has(c, "credential-proxy");
	n->what.secure_access = cli_has(c, "secure-access");
	if (policy && !(n->policy = cli_read_file(c, policy, NULL)))
		return CLI_FAILED;
	if (volumes && !(n->volumes = cli_read_file(c, volumes, NULL)))
		return CLI_FAILED;
	n->what.network_policy = n->policy;
	n->what.volumes = n->volumes;
	return 0;
}

static int show_created(struct cli *c, const struct creation *n, const osb_sandbox *s)
{
	osb_cleanup(buf_done) struct buf json = BUF_INIT(CLI_JSON_MAX);
	const char *timeout = cli_flag(c, "timeout");
	struct json_writer w;

	if (c->quiet) {
		puts(osb_sandbox_id(s));
		return 0;
	}
	json_writer_init(&w, &json);
	json_write_object(&w);
	json_put_cstr(&w, "id", osb_sandbox_id(s));
	json_put_cstr(&w, "status", "created");
	json_put_cstr(&w, "timeout",
		      n->what.timeout_s == OSB_NEVER ? "manual-cleanup"
		      : timeout			     ? timeout
		      : n->timeout		     ? n->timeout
						     : "sdk-default");
	json_put_cstr(&w, n->what.image ? "image" : "snapshot_id",
		      n->what.image ? n->what.image : n->what.snapshot_id);
	json_write_object_end(&w);
	return json_writer_end(&w) < 0 ? CLI_FAILED : show_json(c, buf_view(&json), NULL);
}

int sandbox_create(struct cli *c)
{
	struct creation n = {.what = OSB_CREATE_INIT};
	struct progress progress = {.cli = c, .what = "making a sandbox"};
	osb_sandbox *s = NULL;
	int code = read_creation(c, &n);

	if (code == 0 && !cli_client(c))
		code = CLI_FAILED;
	if (code == 0) {
		int r;

		progress_wait(&progress);
		r = osb_sandbox_create(c->client, &n.what, &c->call, &s, &c->e);
		progress_end(&progress);
		code = cli_done(c, r);
	}
	if (code == 0)
		code = show_created(c, &n, s);
	osb_sandbox_free(s);
	creation_done(&n);
	return code;
}

/* ---- looking ---- */

static int read_count(struct cli *c, const char *name, int *ret)
{
	const char *text = cli_flag(c, name);
	uint32_t n;

	if (!text)
		return 0;
	if (!num_parse_u32(view_of(text), &n) || n < 1 || n > INT32_MAX)
		return cli_usage(c, "--%s: '%s' is no number from 1 on", name, text);
	*ret = (int)n;
	return 0;
}

static int show_page(struct cli *c, const osb_sandbox_page *page)
{
	osb_cleanup(buf_done) struct buf json = BUF_INIT(CLI_JSON_MAX);
	struct json_writer w;

	json_writer_init(&w, &json);
	json_write_object(&w);
	json_write_key(&w, "items");
	json_write_array(&w);
	for (size_t i = 0; i < page->items_n; i++)
		put_info(&w, page->items[i]);
	json_write_array_end(&w);
	put_pagination(&w, page->page, page->page_size, page->total_items, page->total_pages,
		       page->has_next);
	json_write_object_end(&w);
	return json_writer_end(&w) < 0 ? CLI_FAILED : show_json(c, buf_view(&json), COLUMNS);
}

int sandbox_list(struct cli *c)
{
	const char **states = mem_zero(c->given_n + 1, sizeof(char *));
	osb_list filter = {.states = states};
	osb_pair *metadata = cli_pairs(c, "metadata", &filter.metadata_n);
	osb_sandbox_page *page = NULL;
	int code = metadata ? 0 : CLI_USAGE;

	for (size_t n = 0; (states[n] = cli_flag_nth(c, "state", n));)
		n++;
	filter.metadata = metadata;
	if (code == 0)
		code = read_count(c, "page", &filter.page);
	if (code == 0)
		code = read_count(c, "page-size", &filter.page_size);
	if (code == 0 && !cli_client(c))
		code = CLI_FAILED;
	if (code == 0)
		code = cli_done(c, osb_sandbox_list(c->client, &filter, &c->call, &page, &c->e));
	if (code == 0)
		code = show_page(c, page);
	osb_sandbox_page_free(page);
	cli_pairs_free(metadata, filter.metadata_n);
	free(states);
	return code;
}

int sandbox_get(struct cli *c)
{
	osb_cleanup(buf_done) struct buf json = BUF_INIT(CLI_JSON_MAX);
	osb_sandbox_info *info = NULL;
	struct json_writer w;
	int code = cli_done(c, osb_sandbox_get(c->box, &c->call, &info, &c->e));
	if (code == 0) {
		json_writer_init(&w, &json);
		put_info(&w, info);
		code = json_writer_end(&w) < 0 ? CLI_FAILED : show_json(c, buf_view(&json), NULL);
	}
	osb_sandbox_info_free(info);
	return code;
}

int sandbox_endpoint(struct cli *c)
{
	osb_cleanup(buf_done) struct buf json = BUF_INIT(CLI_JSON_MAX);
	osb_endpoint *p = NULL;
	struct json_writer w;
	uint32_t port;
	int code;

	if (!num_parse_u32(view_of(cli_flag(c, "port")), &port) || port < 1 || port > UINT16_MAX)
		return cli_usage(c, "--port: '%s' is no port from 1 to 65535", cli_flag(c, "port"));
	code = cli_done(c, osb_sandbox_endpoint(c->box, (uint16_t)port, 0, &c->call, &p, &c->e));
	if (code == 0) {
		json_writer_init(&w, &json);
		json_write_object(&w);
		json_put_cstr(&w, "endpoint", p->endpoint);
		json_write_key(&w, "headers");
		json_write_object(&w);
		for (size_t i = 0; i < p->headers_n; i++)
			json_put_cstr(&w, p->headers[i].name, p->headers[i].value);
		json_write_object_end(&w);
		put_text(&w, "origin", NULL);
		json_write_object_end(&w);
		code = json_writer_end(&w) < 0 ? CLI_FAILED : show_json(c, buf_view(&json), NULL);
	}
	osb_endpoint_free(p);
	return code;
}

int sandbox_health(struct cli *c)
{
	osb_cleanup(buf_done) struct buf json = BUF_INIT(CLI_JSON_MAX);
	struct json_writer w;
	int r, code;

	r = osb_sandbox_ping(c->box, &c->call, &c->e);
	if (r == OSB_ERR_CANCELLED || r == OSB_ERR_UNAUTHORIZED || r == OSB_ERR_NOT_FOUND)
		return cli_fail(c);
	json_writer_init(&w, &json);
	json_write_object(&w);
	json_put_cstr(&w, "sandbox_id", c->args[0]);
	json_put_bool(&w, "healthy", r == 0);
	json_write_object_end(&w);
	code = json_writer_end(&w) < 0 ? CLI_FAILED : show_json(c, buf_view(&json), NULL);
	return code ? code : r < 0 ? CLI_FAILED : 0;
}

static int show_metrics(void *arg, const osb_metrics *m)
{
	osb_cleanup(buf_done) struct buf json = BUF_INIT(CLI_JSON_MAX);
	struct json_writer w;

	json_writer_init(&w, &json);
	json_write_object(&w);
	json_write_key(&w, "cpu_count");
	json_write_double(&w, m->cpu_count);
	json_write_key(&w, "cpu_used_percentage");
	json_write_double(&w, m->cpu_used_percent);
	json_write_key(&w, "memory_total_in_mib");
	json_write_double(&w, m->memory_total_mib);
	json_write_key(&w, "memory_used_in_mib");
	json_write_double(&w, m->memory_used_mib);
	json_put_int(&w, "timestamp", m->timestamp_ms);
	json_write_object_end(&w);
	return json_writer_end(&w) < 0 ? CLI_FAILED : show_json(arg, buf_view(&json), NULL);
}

int sandbox_metrics(struct cli *c)
{
	osb_metrics m;
	int code;

	if (cli_has(c, "watch")) {
		code = cli_done(
			c, osb_sandbox_watch_metrics(c->box, show_metrics, c, &c->call, &c->e));
	} else {
		code = cli_done(c, osb_sandbox_metrics(c->box, &c->call, &m, &c->e));
		if (code == 0)
			code = show_metrics(c, &m);
	}
	return code;
}

/* ---- changing ---- */

int sandbox_kill(struct cli *c)
{
	osb_cleanup(buf_done) struct buf json = BUF_INIT(CLI_JSON_MAX);
	struct json_writer w;
	int worst = 0, code;

	json_writer_init(&w, &json);
	json_write_array(&w);
	for (size_t i = 0; i < c->args_n && cli_client(c); i++) {
		osb_sandbox *s = NULL;

		code = cli_done(c, osb_sandbox_open(c->client, c->args[i], &s, &c->e));
		if (code == 0)
			code = cli_done(c, osb_sandbox_kill(s, &c->call, &c->e));
		osb_sandbox_free(s);
		worst = code ? code : worst;
		if (code)
			continue;
		json_write_object(&w);
		json_put_cstr(&w, "sandbox_id", c->args[i]);
		json_put_cstr(&w, "status", "terminated");
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	code = json_writer_end(&w) < 0 || !c->client
		       ? CLI_FAILED
		       : show_json(c, buf_view(&json), "sandbox_id status");
	return worst ? worst : code;
}

int sandbox_pause(struct cli *c)
{
	int code = cli_done(c, osb_sandbox_pause(c->box, &c->call, &c->e));
	return code ? code : show_done(c, "Pause request accepted: %s", c->args[0]);
}

int sandbox_resume(struct cli *c)
{
	const char *timeout = cli_flag(c, "resume-timeout");
	int64_t seconds = 30;
	int code;

	if (timeout && !cli_duration(timeout, &seconds))
		return cli_usage(c, "--resume-timeout: '%s' is no duration like 30s", timeout);
	code = cli_done(c, osb_sandbox_resume(c->box, &c->call, &c->e));
	if (code == 0 && !cli_has(c, "skip-health-check"))
		code = cli_done(c, osb_sandbox_wait_ready(c->box, (uint32_t)(seconds * 1000),
							  &c->call, &c->e));
	return code ? code : show_done(c, "Sandbox resumed: %s", c->args[0]);
}

int sandbox_renew(struct cli *c)
{
	osb_cleanup(buf_done) struct buf json = BUF_INIT(CLI_JSON_MAX);
	osb_cleanup(mem_freep) char *expires = NULL;
	struct json_writer w;
	int64_t seconds;
	int code;

	if (!cli_duration(cli_flag(c, "timeout"), &seconds))
		return cli_usage(c, "--timeout: '%s' is no duration like 30m or 2h",
				 cli_flag(c, "timeout"));
	code = cli_done(c, osb_sandbox_renew(c->box, seconds, &c->call, &expires, &c->e));
	if (code)
		return code;
	json_writer_init(&w, &json);
	json_write_object(&w);
	json_put_cstr(&w, "sandbox_id", c->args[0]);
	put_python_time(&w, "expires_at", expires);
	json_write_object_end(&w);
	return json_writer_end(&w) < 0 ? CLI_FAILED : show_json(c, buf_view(&json), NULL);
}
