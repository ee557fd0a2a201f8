/*
 * Bodies of POST /sandboxes: whatever is accepted can be started, stored and read back the same.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "codec/warden_mounts.h"
#include "server/config.h"
#include "server/failure.h"
#include "server/request_create.h"
#include "server/sandbox.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_refusal(const struct failure *f)
{
	assert(f->status == 400 || f->status == 422 || f->status == 501);
	assert(f->code && f->code[0] && f->message[0]);
}

static void check_stored(const struct sandbox_spec *spec)
{
	struct sandbox_spec again;
	struct err e = ERR_NONE;
	char *text, *text_again;

	assert(sandbox_spec_format(spec, &text, &e) == 0);
	assert(sandbox_spec_parse(view_of(text), &again, &e) == 0);
	assert(sandbox_spec_format(&again, &text_again, &e) == 0);
	assert(strcmp(text, text_again) == 0);
	sandbox_spec_done(&again);
	free(text);
	free(text_again);
}

static void check_volumes(const struct volumes_list *l)
{
	assert(l->n <= WARDEN_VOLUMES_MAX);
	for (size_t i = 0; i < l->n; i++) {
		const struct volume *v = &l->v[i];

		assert(warden_mounts_path_ok(view_of(v->mount_path)));
		assert(warden_mounts_sub_path_ok(view_of(v->below)));
		assert(v->kind != VOLUME_HOST || v->number < 2);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char data_dir[] = "/data", share_dir[] = "/srv/x/";
	static char *allowed[] = {data_dir, share_dir, NULL};
	static char pattern[] = "opensandbox/code-interpreter:*", image[] = "host";
	static char mode[] = "dns+nft";
	static struct config_alias alias = {.pattern = pattern, .image = image};
	const struct config config = {
		.max_sandbox_timeout_seconds = 86400,
		.aliases = &alias,
		.aliases_n = 1,
		.allowed_host_paths = {.v = allowed, .len = 2},
		.network = true,
		.egress_mode = mode,
		.egress_max_rules = 64,
	};
	struct failure f = FAILURE_NONE;
	struct sandbox_spec spec;
	struct err e = ERR_NONE;
	int64_t timeout_s = -1;
	char *start;

	if (request_create(view_mem(data, size), &config, &spec, &timeout_s, &f) < 0) {
		check_refusal(&f);
		return 0;
	}
	assert(timeout_s == 0 || (timeout_s >= 60 && timeout_s <= 86400));
	assert(!spec.image_uri != !spec.snapshot_id);
	assert(spec.image_uri ? spec.image_uri[0] : spec.snapshot_id[0]);
	assert(spec.entrypoint.len == 0 || spec.entrypoint.v[0][0]);
	assert(spec.runtime_limits.pids > 0);
	check_volumes(&spec.volumes);
	assert(spec.network.policy ||
	       (!spec.network.credential_proxy && spec.network.settings.n == 0));
	for (size_t i = 0; i < spec.env.n; i++)
		assert(spec.env.v[i].name[0] && !strchr(spec.env.v[i].name, '='));
	check_stored(&spec);
	assert(sandbox_start_file(&spec, "token", VIEW("certificate"), &start, &e) == 0);
	free(start);
	sandbox_spec_done(&spec);
	return 0;
}
