/*
 * imager/fetch.c - decodes a request for the registry client, and reports what becomes of it.
 */
#include "imager/fetch.h"

#include "base/err.h"
#include "codec/json.h"
#include "imager/job.h"

static int run(struct job *j, struct err *e)
{
	struct view op = VIEW_NONE;
	int r = json_field_string(j->request, "op", &op, e);

	if (r < 0)
		return r;
	return err_set(e, -EOPNOTSUPP, "there is no operation '" VIEW_FMT "'", VIEW_ARG(op));
}

void fetch_run(struct job *j)
{
	struct err e = ERR_NONE;

	if (run(j, &e) < 0)
		job_failed(j, &e);
}
