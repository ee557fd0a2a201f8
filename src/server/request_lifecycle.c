/*
 * server/request_lifecycle.c - hooks are checked here, schedules included, so that execd gets only
 * good ones.
 */
#include "server/request_lifecycle.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "codec/cron.h"
#include "codec/json.h"
#include "server/failure.h"
#include "server/request_fields.h"
#include "server/sandbox.h"

#define TIMEOUT_DEFAULT_S     60
#define PRE_START_TIMEOUT_MAX 10800
#define PERIODIC_TIMEOUT_MAX  300
#define PERIODIC_MAX	      32
#define COMMAND_MAX	      256

static int read_command(const struct json *v, const char *field, int64_t timeout_max,
			struct sandbox_hook *ret, struct failure *f)
{
	const struct json *command = NULL;
	struct err e = ERR_NONE;

	ret->timeout_s = TIMEOUT_DEFAULT_S;
	if (json_kind(v) != JSON_OBJECT)
		return failure_set(f, 422, REQUEST_CODE, "%s must be an object", field);
	if (request_array(v, "command", &command, f) < 0)
		return -1;
	if (json_len(command) == 0)
		return failure_set(f, 422, REQUEST_CODE, "%s.command must have at least one word",
				   field);
	if (request_words(command, "command", COMMAND_MAX, &ret->command, f) < 0)
		return -1;
	if (ret->command.v[0][0] == '\0')
		return failure_set(f, 422, REQUEST_CODE, "%s.command must name a program", field);
	if (json_field_int(v, "timeoutSeconds", 1, timeout_max, &ret->timeout_s, &e) < 0)
		return failure_set(f, 422, REQUEST_CODE, "%s: %s", field, e.msg);
	return 0;
}

static bool name_taken(const struct sandbox_spec *spec, size_t n, struct view name)
{
	for (size_t i = 0; i < n; i++)
		if (view_is(name, spec->periodic[i].name))
			return true;
	return false;
}

static int read_periodic(const struct json *v, struct sandbox_spec *spec, size_t i,
			 struct failure *f)
{
	struct sandbox_hook *hook = &spec->periodic[i];
	struct view name = VIEW_NONE, schedule = VIEW_NONE;
	struct err e = ERR_NONE;
	struct cron cron;
	char field[48];

	snprintf(field, sizeof(field), "lifecycle.periodic[%zu]", i);
	if (read_command(v, field, PERIODIC_TIMEOUT_MAX, hook, f) < 0 ||
	    request_string(v, "name", &name, f) < 0 ||
	    request_string(v, "schedule", &schedule, f) < 0)
		return -1;
	name = view_trim(name);
	if (name.len == 0 || name_taken(spec, i, name))
		return failure_set(f, 422, REQUEST_CODE, "%s.name must be given and unique", field);
	if (cron_parse(schedule, &cron, &e) < 0)
		return failure_set(f, 422, REQUEST_CODE, "%s.schedule: %s", field, e.msg);
	hook->name = mem_strndup(name.p, name.len);
	hook->schedule = mem_strndup(schedule.p, schedule.len);
	return 0;
}

int request_lifecycle(const struct json *body, struct sandbox_spec *spec, struct failure *f)
{
	const struct json *lifecycle = NULL, *pre_start = NULL, *periodic = NULL;

	if (request_object(body, "lifecycle", &lifecycle, f) < 0)
		return -1;
	if (!lifecycle)
		return 0;
	if (request_object(lifecycle, "preStart", &pre_start, f) < 0 ||
	    request_array(lifecycle, "periodic", &periodic, f) < 0)
		return -1;
	if (pre_start) {
		spec->pre_start = mem_new(struct sandbox_hook);
		if (read_command(pre_start, "lifecycle.preStart", PRE_START_TIMEOUT_MAX,
				 spec->pre_start, f) < 0)
			return -1;
	}
	if (json_len(periodic) > PERIODIC_MAX)
		return failure_set(f, 422, REQUEST_CODE,
				   "lifecycle.periodic has more than %d hooks", PERIODIC_MAX);
	if (json_len(periodic) == 0)
		return 0;
	spec->periodic = mem_new_array(struct sandbox_hook, json_len(periodic));
	for (size_t i = 0; i < json_len(periodic); i++) {
		spec->periodic_n = i + 1; /* what is filled half is freed too */
		if (read_periodic(json_at(periodic, i), spec, i, f) < 0)
			return -1;
	}
	return 0;
}
