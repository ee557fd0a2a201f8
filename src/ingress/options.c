/*
 * ingress/options.c - getopt, with one dash or two.
 */
#include "ingress/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/num.h"
#include "codec/http1.h"
#include "ingress/keys.h"

#define SERVERS_MAX 64

const char options_help[] =
	"Usage: opensandbox-ingress --server URL [OPTION]...\n"
	"\n"
	"Brings requests to ports of sandboxes: finds the sandbox that a request names, asks\n"
	"whether the client may, and passes it on to the server that has the sandbox.\n"
	"\n"
	"Servers:\n"
	"  --server URL              an OpenSandbox server, http://HOST[:PORT] or https://...;\n"
	"                            may be given several times: they are asked in this order.\n"
	"                            Names are looked up once, at the start\n"
	"  --api-key KEY             what the servers know us by; better in the environment, as\n"
	"                            OPEN_SANDBOX_API_KEY\n"
	"  --server-ca FILE          further authorities for https servers: a PEM file, or a\n"
	"                            directory of them\n"
	"\n"
	"Clients:\n"
	"  --host ADDRESS            IP address to listen on (0.0.0.0)\n"
	"  --port PORT               port to listen on (28888)\n"
	"  --mode MODE               what names the sandbox and its port (header):\n"
	"                            header: <id>-<port> in the header OpenSandbox-Ingress-To,\n"
	"                            else in OPEN-SANDBOX-INGRESS, else the first label of the\n"
	"                            host name; uri: the path, /<id>/<port>/...\n"
	"  --secure-access-keys KEYS keys of signed routes, a=BASE64,b=BASE64; the names are one\n"
	"                            of 0-9 and a-z each\n"
	"  --tls-cert FILE           speak https with this certificate (PEM, the issuers' behind\n"
	"  --tls-key FILE            it) and key; both are read again when they change and on\n"
	"                            SIGHUP\n"
	"  --trust-forwarded         keep what X-Forwarded-* headers say: a proxy that clients\n"
	"                            cannot go around writes them\n"
	"  --user NAME               whom to become when started as root (nobody)\n"
	"\n"
	"Renewal of sandboxes that are used:\n"
	"  --renew-intent-enabled    tell a Redis list which sandboxes are used\n"
	"  --renew-intent-redis-dsn URL\n"
	"                            redis://[[USER]:PASSWORD@]HOST[:PORT][/DB]\n"
	"                            (redis://127.0.0.1:6379/0); also in the environment, as\n"
	"                            OPEN_SANDBOX_REDIS_DSN\n"
	"  --renew-intent-queue-key KEY\n"
	"                            the list (opensandbox:renew:intent)\n"
	"  --renew-intent-queue-max-len N\n"
	"                            its length; older entries go (0: no limit)\n"
	"  --renew-intent-min-interval SECONDS\n"
	"                            between two entries of one sandbox (60)\n"
	"\n"
	"  --log-level LEVEL         error, warn, info or debug (info)\n"
	"  --namespace NAME          taken for the sake of old command lines; has no meaning\n"
	"  --provider-type TYPE      only `server`, the default; batchsandbox and agent-sandbox\n"
	"                            need Kubernetes, which this program does not speak to\n"
	"  --help, --version\n"
	"\n"
	"/status.ok answers OK; /status.ok/network-readiness answers OK, or DEGRADED while a "
	"server\n"
	"does not answer.\n";

enum {
	OPT_SERVER = 1,
	OPT_API_KEY,
	OPT_SERVER_CA,
	OPT_HOST,
	OPT_PORT,
	OPT_MODE,
	OPT_KEYS,
	OPT_TLS_CERT,
	OPT_TLS_KEY,
	OPT_TRUST,
	OPT_USER,
	OPT_RENEW,
	OPT_DSN,
	OPT_QUEUE_KEY,
	OPT_QUEUE_MAX,
	OPT_INTERVAL,
	OPT_LEVEL,
	OPT_NAMESPACE,
	OPT_PROVIDER,
	OPT_HELP,
	OPT_VERSION,
};

static const struct option flags[] = {
	{"server", required_argument, NULL, OPT_SERVER},
	{"api-key", required_argument, NULL, OPT_API_KEY},
	{"server-ca", required_argument, NULL, OPT_SERVER_CA},
	{"host", required_argument, NULL, OPT_HOST},
	{"port", required_argument, NULL, OPT_PORT},
	{"mode", required_argument, NULL, OPT_MODE},
	{"secure-access-keys", required_argument, NULL, OPT_KEYS},
	{"tls-cert", required_argument, NULL, OPT_TLS_CERT},
	{"tls-key", required_argument, NULL, OPT_TLS_KEY},
	{"trust-forwarded", optional_argument, NULL, OPT_TRUST},
	{"user", required_argument, NULL, OPT_USER},
	{"renew-intent-enabled", optional_argument, NULL, OPT_RENEW},
	{"renew-intent-redis-dsn", required_argument, NULL, OPT_DSN},
	{"renew-intent-queue-key", required_argument, NULL, OPT_QUEUE_KEY},
	{"renew-intent-queue-max-len", required_argument, NULL, OPT_QUEUE_MAX},
	{"renew-intent-min-interval", required_argument, NULL, OPT_INTERVAL},
	{"log-level", required_argument, NULL, OPT_LEVEL},
	{"namespace", required_argument, NULL, OPT_NAMESPACE},
	{"provider-type", required_argument, NULL, OPT_PROVIDER},
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	{0},
};

/* ---- values ---- */

static int take_number(const char *name, uint32_t min, uint32_t max, uint32_t *ret, struct err *e)
{
	uint32_t n;

	if (!num_parse_u32(view_of(optarg), &n) || n < min || n > max)
		return err_set(e, -EINVAL, "--%s takes a number from %u to %u, not '%s'", name, min,
			       max, optarg);
	*ret = n;
	return 0;
}

static int take_bool(const char *name, bool *ret, struct err *e)
{
	struct view text = view_of(optarg ? optarg : "true");

	*ret = view_iis(text, "true") || view_is(text, "1") || view_iis(text, "t");
	if (*ret || view_iis(text, "false") || view_is(text, "0") || view_iis(text, "f"))
		return 0;
	return err_set(e, -EINVAL, "--%s takes true or false, not '%s'", name, optarg);
}

static int take_mode(struct options *o, struct err *e)
{
	if (!preview_mode_parse(view_of(optarg), &o->mode) || o->mode == PREVIEW_WILDCARD)
		return err_set(e, -EINVAL, "--mode takes header or uri, not '%s'", optarg);
	return 0;
}

static int take_level(struct options *o, struct err *e)
{
	static const struct {
		const char *name;
		enum log_level level;
	} levels[] = {
		{"error", LOG_ERROR},  {"fatal", LOG_ERROR}, {"warn", LOG_WARN},
		{"warning", LOG_WARN}, {"info", LOG_INFO},   {"debug", LOG_DEBUG},
	};

	for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
		if (view_iis(view_of(optarg), levels[i].name)) {
			o->level = levels[i].level;
			return 0;
		}
	}
	return err_set(e, -EINVAL, "--log-level takes error, warn, info or debug, not '%s'",
		       optarg);
}

static int take_provider(struct err *e)
{
	if (view_is(view_of(optarg), "server"))
		return 0;
	return err_set(e, -ENOTSUP,
		       "--provider-type %s needs Kubernetes, which this program does not speak to; "
		       "leave it out and name servers by --server",
		       optarg);
}

/* What others could read in the list of processes. */
static void hide(char *text)
{
	memset(text, 'x', strlen(text));
}

static int take_secret(int c, struct options *o, struct err *e)
{
	int r = 0;

	if (c == OPT_API_KEY) {
		free(o->api_key);
		o->api_key = mem_strdup(optarg);
	} else if (c == OPT_KEYS) {
		free(o->keys);
		o->keys = NULL;
		r = keys_parse(view_of(optarg), &o->keys, &o->keys_n, e);
		if (r < 0)
			r = err_ctx(e, "--secure-access-keys");
	} else {
		r = redis_url_parse(view_of(optarg), &o->redis, e);
		if (r < 0)
			r = err_ctx(e, "--renew-intent-redis-dsn");
	}
	hide(optarg);
	return r;
}

static int take_server(struct options *o, struct err *e)
{
	if (o->servers.len == SERVERS_MAX)
		return err_set(e, -E2BIG, "there are more than %d servers", SERVERS_MAX);
	strv_add(&o->servers, optarg);
	return 0;
}

static int take_text(int c, struct options *o)
{
	switch (c) {
	case OPT_SERVER_CA:
		o->server_ca = optarg;
		break;
	case OPT_HOST:
		o->host = view_is(view_of(optarg), "localhost") ? "127.0.0.1" : optarg;
		break;
	case OPT_TLS_CERT:
		o->tls_cert = optarg;
		break;
	case OPT_TLS_KEY:
		o->tls_key = optarg;
		break;
	case OPT_USER:
		o->user = optarg;
		break;
	default:
		o->queue_key = optarg;
		break;
	}
	return 0;
}

static int take(int c, const char *name, struct options *o, struct err *e)
{
	uint32_t n = 0;
	int r;

	switch (c) {
	case OPT_SERVER:
		return take_server(o, e);
	case OPT_API_KEY:
	case OPT_KEYS:
	case OPT_DSN:
		return take_secret(c, o, e);
	case OPT_SERVER_CA:
	case OPT_HOST:
	case OPT_TLS_CERT:
	case OPT_TLS_KEY:
	case OPT_USER:
	case OPT_QUEUE_KEY:
		return take_text(c, o);
	case OPT_PORT:
		r = take_number(name, 0, UINT16_MAX, &n, e);
		o->port = (uint16_t)n;
		return r;
	case OPT_MODE:
		return take_mode(o, e);
	case OPT_TRUST:
		return take_bool(name, &o->trust_forwarded, e);
	case OPT_RENEW:
		return take_bool(name, &o->renew, e);
	case OPT_QUEUE_MAX:
		return take_number(name, 0, INT32_MAX, &o->queue_max_len, e);
	case OPT_INTERVAL:
		return take_number(name, 0, INT32_MAX, &o->min_interval_s, e);
	case OPT_LEVEL:
		return take_level(o, e);
	case OPT_NAMESPACE:
		o->namespace_given = true;
		return 0;
	case OPT_PROVIDER:
		return take_provider(e);
	case OPT_HELP:
		o->help = true;
		return 0;
	case OPT_VERSION:
		o->version = true;
		return 0;
	default:
		return err_set(e, -EINVAL, "unknown option or missing value; see --help");
	}
}

/* ---- all of it ---- */

static int from_environment(struct options *o, struct err *e)
{
	const char *key = getenv("OPEN_SANDBOX_API_KEY"), *dsn = getenv("OPEN_SANDBOX_REDIS_DSN");
	int r = redis_url_parse(view_of(dsn ? dsn : "redis://127.0.0.1:6379/0"), &o->redis, e);

	if (r < 0)
		return err_ctx(e, "OPEN_SANDBOX_REDIS_DSN");
	if (key && *key)
		o->api_key = mem_strdup(key);
	return 0;
}

static int check(const struct options *o, struct err *e)
{
	if (o->help || o->version)
		return 0;
	if (!o->servers.len)
		return err_set(e, -EINVAL, "--server is missing; see --help");
	if (!o->tls_cert != !o->tls_key)
		return err_set(e, -EINVAL, "--tls-cert and --tls-key belong together");
	if (o->api_key && !http1_is_field_value(view_of(o->api_key)))
		return err_set(e, -EINVAL, "the API key cannot be sent in a header");
	return 0;
}

int options_parse(int argc, char **argv, struct options *ret, struct err *e)
{
	struct options o = {
		.host = "0.0.0.0",
		.port = 28888,
		.mode = PREVIEW_HEADER,
		.level = LOG_INFO,
		.user = "nobody",
		.queue_key = "opensandbox:renew:intent",
		.min_interval_s = 60,
	};
	int c, at = 0, r = from_environment(&o, e);

	opterr = 0;
	optind = 1;
	while (r == 0 && (c = getopt_long_only(argc, argv, "", flags, &at)) != -1)
		r = take(c, flags[at].name, &o, e);
	if (r == 0 && optind < argc)
		r = err_set(e, -EINVAL, "'%s' is no option; see --help", argv[optind]);
	if (r == 0)
		r = check(&o, e);
	if (r < 0) {
		options_done(&o);
		return r;
	}
	*ret = o;
	return 0;
}

void options_done(struct options *o)
{
	strv_done(&o->servers);
	if (o->api_key)
		explicit_bzero(o->api_key, strlen(o->api_key));
	free(o->api_key);
	if (o->keys)
		explicit_bzero(o->keys, o->keys_n * sizeof(*o->keys));
	free(o->keys);
	explicit_bzero(&o->redis, sizeof(o->redis));
	o->api_key = NULL;
	o->keys = NULL;
}
