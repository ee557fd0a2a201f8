/*
 * server/config_schema.c - the table of keys.
 */
#include "server/config_schema.h"

#include <string.h>

#include "server/config.h"

#define AT(field) offsetof(struct config, field)
#define NUMBER	  CONFIG_INT
#define LARGE	  INT32_MAX

static const char *const levels[] = {"DEBUG", "INFO",  "WARNING",  "WARN",
				     "ERROR", "FATAL", "CRITICAL", NULL};
static const char *const runtimes[] = {"native", NULL};
static const char *const egress_modes[] = {"dns+nft", "dns", NULL};
static const char *const egress_ways[] = {"reject", "drop", NULL};
static const char *const ingress_modes[] = {"direct", "gateway", NULL};
static const char *const route_modes[] = {"wildcard", "header", "uri", NULL};
static const char *const policies[] = {"IfNotPresent", "Always", "Never", NULL};

/* clang-format off */
const struct config_key config_keys[] = {
	{"server", "host", CONFIG_STRING, AT(host), 0, 0, NULL, "\"0.0.0.0\"",
	 "IP address to listen on; `localhost` is 127.0.0.1."},
	{"server", "port", NUMBER, AT(port), 1, 65535, NULL, "8080",
	 "TCP port to listen on."},
	{"server", "api_key", CONFIG_STRING, AT(api_key), 0, 0, NULL, NULL,
	 "The key that clients send in OPEN-SANDBOX-API-KEY. The environment's "
	 "OPENSANDBOX_SERVER_API_KEY goes before it. Without any key the server starts only if "
	 "OPENSANDBOX_INSECURE_SERVER=YES is set, or if YES is typed at its terminal."},
	{"server", "eip", CONFIG_STRING, AT(eip), 0, 0, NULL, NULL,
	 "Host, with port and path if need be, under which clients reach this server; endpoints "
	 "name it instead of the address that was asked."},
	{"server", "max_sandbox_timeout_seconds", NUMBER, AT(max_sandbox_timeout_seconds),
	 60, LARGE, NULL, NULL,
	 "Longest life that a create request may ask for."},
	{"server", "timeout_keep_alive", NUMBER, AT(timeout_keep_alive), 1, 86400, NULL, "75",
	 "Seconds that a connection may stay without a request; longer than clients keep theirs."},
	{"server", "timeout_graceful_shutdown", NUMBER, AT(timeout_graceful_shutdown),
	 1, 86400, NULL, "5",
	 "Seconds that running requests get at the end; more than 7 count as 7."},
	{"server", "limit_concurrency", NUMBER, AT(limit_concurrency), 0, 1000000, NULL, "4096",
	 "Connections at a time; more are answered 503. 0: as many as the system allows."},
	{"server", "backlog", NUMBER, AT(backlog), 1, 65535, NULL, "2048",
	 "Connections that may wait to be accepted."},
	{"server", "tls_cert", CONFIG_STRING, AT(tls_cert), 0, 0, NULL, NULL,
	 "File with the certificate, in PEM, the issuers' behind it: the server then speaks https "
	 "and nothing else. It is read again when it changes, and on SIGHUP; one that is not good "
	 "leaves the old one in use."},
	{"server", "tls_key", CONFIG_STRING, AT(tls_key), 0, 0, NULL, NULL,
	 "File with the certificate's key, in PEM, without a password. Only root need read it."},

	{"log", "level", CONFIG_STRING, AT(log_level), 0, 0, levels, "\"INFO\"",
	 "How much is said on stderr: ERROR, WARNING, INFO or DEBUG."},

	{"runtime", "type", CONFIG_STRING, AT(runtime_type), 0, 0, runtimes, "\"native\"",
	 "What makes sandboxes; this server has `native`."},

	{"native", "state_dir", CONFIG_STRING, AT(state_dir), 0, 0, NULL,
	 "\"/var/lib/opensandbox\"",
	 "Directory of sandboxes, images and the database; one server at a time uses it."},
	{"native", "user", CONFIG_STRING, AT(user), 0, 0, NULL, "\"nobody\"",
	 "User that the network-facing process becomes: a name of /etc/passwd, or `uid:gid`."},
	{"native", "network", CONFIG_BOOL, AT(network), 0, 0, NULL, "true",
	 "Whether sandboxes reach the outside; without it they have loopback only."},
	{"native", "subnet", CONFIG_STRING, AT(subnet), 0, 0, NULL, "\"10.213.0.0/16\"",
	 "Addresses of sandboxes. Choose one that neither the host nor its networks use."},
	{"native", "exec_token", CONFIG_BOOL, AT(exec_token), 0, 0, NULL, "true",
	 "Whether exec endpoints demand the token that the endpoint answer carries; `false` is for "
	 "clients that do not send it."},
	{"native", "pids_limit", NUMBER, AT(pids_limit), 1, 4194304, NULL, "4096",
	 "Processes and threads that one sandbox may have."},
	{"native", "max_sandboxes", NUMBER, AT(max_sandboxes), 1, 1000000, NULL, "4096",
	 "Sandboxes at a time; more are refused with 429."},
	{"native", "max_concurrent_creates", NUMBER, AT(max_concurrent_creates), 1, 65535, NULL,
	 "256",
	 "Creates under way at a time; more are refused with 503."},
	{"native", "max_concurrent_requests", NUMBER, AT(max_concurrent_requests), 0, 1000000,
	 NULL, "2048",
	 "Requests under way at a time, streams included; more are refused with 503. 0: no limit."},
	{"native", "seeds", NUMBER, AT(seeds), 0, 256, NULL, "8",
	 "Sandboxes that are made ahead and wait, so that a create need not."},
	{"native", "code_pool", CONFIG_STRING, AT(code_pool), 0, 0, NULL, NULL,
	 "Interpreters that every sandbox starts ahead for code contexts, like `python:1,bash:1`; "
	 "a create's extension `opensandbox.code.pool` wins."},

	{"native.aliases", "*", CONFIG_ALIASES, AT(aliases), 0, 0, NULL,
	 "{ \"opensandbox/code-interpreter:*\" = \"host\" }",
	 "Image names, `*` matching anything, and the image that stands for them: `host`, which is "
	 "made of the host's own /usr, or another name. Giving the section replaces the default."},

	{"images", "pull_policy", CONFIG_STRING, AT(pull_policy), 0, 0, policies,
	 "\"IfNotPresent\"",
	 "When a create asks the registry: IfNotPresent, Always (for a name without a digest), or "
	 "Never."},
	{"images", "create_wait_seconds", NUMBER, AT(create_wait_seconds), 0, 600, NULL, "20",
	 "Seconds that a create waits for its image. Then it is answered with a sandbox that is "
	 "Pending; the official SDKs wait 30 seconds for an answer."},
	{"images", "max_size", CONFIG_SIZE, AT(images_max_bytes), 0, 0, NULL, "\"0\"",
	 "Size of all images on disk, without snapshots, as `\"50Gi\"`: above it, images that "
	 "nobody uses go, the longest unused first. `\"0\"`: no limit."},
	{"images", "max_age_seconds", NUMBER, AT(images_max_age_seconds), 0, LARGE, NULL, "0",
	 "Seconds after its last use that an image is kept. 0: for ever."},
	{"images", "max_image_size", CONFIG_SIZE, AT(images_max_image_bytes), 0, 0, NULL,
	 "\"64Gi\"",
	 "Size that one image may have, packed or unpacked; pulls and imports of larger ones fail. "
	 "`\"0\"`: no limit."},
	{"images", "insecure_registries", CONFIG_STRINGS, AT(insecure_registries), 0, 0, NULL,
	 "[]",
	 "Registries, as `host:port`, that are asked over plain HTTP; those on loopback need no "
	 "mention."},
	{"images", "docker_config", CONFIG_STRING, AT(docker_config), 0, 0, NULL, NULL,
	 "Docker's config.json with credentials for registries; read when the server starts. A "
	 "request's own credentials go before it."},

	{"images.mirrors", "*", CONFIG_MIRRORS, AT(mirrors), 0, 0, NULL, NULL,
	 "Registries, like `docker.io`, and the addresses that are asked before them, like "
	 "`https://mirror.local`."},

	{"storage", "allowed_host_paths", CONFIG_STRINGS, AT(allowed_host_paths), 0, 0, NULL, "[]",
	 "Directories of the host that sandboxes may mount as volumes, with all that is in them. "
	 "None by default. Of directories that lie in each other the outer one counts: links below "
	 "it must stay in it."},
	{"storage", "ossfs_program", CONFIG_STRING, AT(ossfs_program), 0, 0, NULL, NULL,
	 "Program that mounts the buckets of `ossfs` volumes, spoken to as its name says: "
	 "`ossfs2`, `s3fs`, or anything else as `ossfs`. By default whichever of them is "
	 "installed."},

	{"egress", "mode", CONFIG_STRING, AT(egress_mode), 0, 0, egress_modes, "\"dns+nft\"",
	 "How network policies are enforced: `dns+nft` refuses names and addresses, `dns` filters "
	 "names alone and lets every address pass. The environment's OPENSANDBOX_EGRESS_MODE, and "
	 "the variables that [egress.md](egress.md) names, go before this section."},
	{"egress", "dns_upstream", CONFIG_STRINGS, AT(egress_dns_upstream), 0, 0, NULL, "[]",
	 "DNS servers that are asked for sandboxes with a policy, as `\"198.51.100.1\"` or "
	 "`\"198.51.100.1:5353\"`, in this order. None: those of the host."},
	{"egress", "dns_upstream_timeout", NUMBER, AT(egress_dns_upstream_timeout), 1, 120, NULL,
	 "5",
	 "Seconds to wait for a DNS server's answer."},
	{"egress", "refuse", CONFIG_STRING, AT(egress_refuse), 0, 0, egress_ways, "\"reject\"",
	 "What becomes of packets that a policy does not allow: `reject` tells the program at "
	 "once, `drop` lets it wait."},
	{"egress", "max_rules", NUMBER, AT(egress_max_rules), 0, 1000000, NULL, "4096",
	 "Rules that one policy may have. 0: no limit."},
	{"egress", "rules_dir", CONFIG_STRING, AT(egress_rules_dir), 0, 0, NULL,
	 "\"/var/egress/rules\"",
	 "Directory of `deny.always` and `allow.always`: targets, one a line, that go before every "
	 "policy. They are read again every minute."},
	{"egress", "deny_webhook", CONFIG_STRING, AT(egress_deny_webhook), 0, 0, NULL, NULL,
	 "Address that names which were refused are posted to."},

	{"ingress", "mode", CONFIG_STRING, AT(ingress_mode), 0, 0, ingress_modes, "\"direct\"",
	 "How ports of sandboxes are named to clients: `direct`, as paths of this server below "
	 "`/sandboxes/{id}/proxy/`, or `gateway`, as the sections below say. The server answers to "
	 "both."},
	{"ingress", "resume_wait_seconds", NUMBER, AT(ingress_resume_wait_seconds), 1, 600, NULL,
	 "30",
	 "Seconds that a request waits for a paused sandbox that it resumes, if the sandbox was "
	 "created with the extension `access.resume.on.request`."},
	{"ingress", "answer_timeout_seconds", NUMBER, AT(ingress_answer_timeout_seconds), 0, 86400,
	 NULL, "600",
	 "Seconds of silence after which a request is answered 504, as long as its answer has not "
	 "begun; execd has no such limit. 0: none."},
	{"ingress.gateway", "address", CONFIG_STRING, AT(gateway_address), 0, 0, NULL, NULL,
	 "Where clients reach the gateway, without a scheme: `*.example.com` for the mode "
	 "`wildcard`, else a host, with port if need be, and with a path for the mode `uri`."},
	{"ingress.gateway.route", "mode", CONFIG_STRING, AT(gateway_route_mode), 0, 0, route_modes,
	 NULL,
	 "What names the sandbox and its port: `wildcard`, the host (`<id>-<port>.example.com`); "
	 "`header`, the header OpenSandbox-Ingress-To; or `uri`, the path (`/<id>/<port>/`)."},
	{"ingress.secure_access", "active_key", CONFIG_STRING, AT(ingress_active_key), 0, 0, NULL,
	 NULL,
	 "The `key_id` of the key that new routes are signed with."},
	{"ingress.secure_access", "keys", CONFIG_KEYS, AT(ingress_keys), 0, 0, NULL, NULL,
	 "Keys of signed routes, like `[{key_id=\"a\", key=\"c2VjcmV0LWtleQ\"}]`: one of 0-9 and "
	 "a-z, and a secret in base64. Routes signed with any of them are honoured."},

	{"renew_intent", "enabled", CONFIG_BOOL, AT(renew_enabled), 0, 0, NULL, "false",
	 "Whether using a sandbox through the proxy renews it, if its create request asked so."},
	{"renew_intent", "min_interval_seconds", NUMBER, AT(renew_min_interval_seconds),
	 0, LARGE, NULL, "60",
	 "Least time between two such renewals of one sandbox."},
	{0},
};

const struct config_idle config_idle[] = {
	{"server.thread_pool_size", "there are no threads"},
	{"server.loop", "there is one event loop"},
	{"server.http", "there is one HTTP parser"},
	{"log.file_enabled", "logs go to stderr"},
	{"log.file_path", "logs go to stderr"},
	{"log.access_file_path", "logs go to stderr"},
	{"log.file_max_bytes", "logs go to stderr"},
	{"log.file_backup_count", "logs go to stderr"},
	{"runtime.execd_image", "execd comes with the server"},
	{"runtime.execd_run_as_init", "execd is always the first process"},
	{"docker", "the runtime is native"},
	{"kubernetes", "the runtime is native"},
	{"agent_sandbox", "the runtime is native"},
	{"egress.image", "the filter comes with the server"},
	{"egress.disable_ipv6", "sandboxes reach nothing over IPv6"},
	{"egress.otlp_endpoint", "telemetry is not offered yet"},
	{"proxy", "the proxy reaches sandboxes directly"},
	{"secure_runtime", "the runtime is native"},
	{"tenants", "there is one tenant"},
	{"store", "the database is in native.state_dir"},
	{"otel", "telemetry is not offered yet"},
	{"renew_intent.redis", "intents come through the proxy alone"},
	{"storage.ossfs_mount_root", "buckets are mounted in native.state_dir"},
	{"storage.volume_default_size", "volumes have no size here"},
	{0},
};

static const struct {
	const char *name, *meaning;
} sections[] = {
	{"server", "The HTTP API."},
	{"log", "What the server says about itself, one line per event on stderr."},
	{"runtime", "What makes sandboxes."},
	{"native", "Sandboxes made by the server's own warden, without Docker."},
	{"native.aliases", "Other names for images."},
	{"images", "Where images come from and how long they stay; see [images.md](images.md)."},
	{"images.mirrors", "Nearer copies of registries."},
	{"storage", "What of the host's files sandboxes may see."},
	{"egress", "What sandboxes with a network policy may reach; see [egress.md](egress.md)."},
	{"ingress", "How ports of sandboxes are reached; see [ingress.md](ingress.md)."},
	{"ingress.gateway", "For the mode `gateway` alone."},
	{"ingress.gateway.route", "For the mode `gateway` alone."},
	{"ingress.secure_access", "Signed routes, for the mode `gateway` alone."},
	{"renew_intent", "Sandboxes that live on while they are used."},
};
/* clang-format on */

const char *config_section_meaning(const char *section)
{
	for (size_t i = 0; i < ARRAY_LEN(sections); i++)
		if (strcmp(sections[i].name, section) == 0)
			return sections[i].meaning;
	return "";
}

const char *config_type_name(enum config_type type)
{
	static const char *const names[CONFIG_TYPES_] = {
		[CONFIG_STRING] = "string",
		[CONFIG_INT] = "number",
		[CONFIG_BOOL] = "true/false",
		[CONFIG_STRINGS] = "list of strings",
		[CONFIG_SIZE] = "size",
		[CONFIG_ALIASES] = "strings",
		[CONFIG_MIRRORS] = "list of strings",
		[CONFIG_KEYS] = "list of keys",
	};

	return names[type];
}

bool config_is_section(enum config_type type)
{
	return type == CONFIG_ALIASES || type == CONFIG_MIRRORS;
}

/* Is it "section.name"? */
static bool is_name(struct view full, const char *section, const char *name)
{
	struct view s = view_of(section);

	return view_starts(full, s) && full.len > s.len && full.p[s.len] == '.' &&
	       view_is(view_skip(full, s.len + 1), name);
}

const struct config_key *config_key_find(struct view full_name)
{
	for (const struct config_key *k = config_keys; k->section; k++)
		if (is_name(full_name, k->section, k->name))
			return k;
	return NULL;
}

const struct config_idle *config_idle_find(struct view full_name)
{
	for (const struct config_idle *i = config_idle; i->name; i++)
		if (view_is(full_name, i->name))
			return i;
	return NULL;
}
