/*
 * mcp/tools_snapshot.c - snapshots: taken, listed, deleted, made sandboxes of again.
 */
#include "mcp/call.h"
#include "mcp/mcp.h"
#include "mcp/registry.h"
#include "mcp/tools.h"

static const struct shape snapshot_members[] = {
	{"id", SHAPE_STRING, SHAPE_NEEDED, NULL, "snapshot_id for the other tools.", 0, 0, NULL},
	{"sandbox_id", SHAPE_STRING, 0, NULL, "What it was taken of.", 0, 0, NULL},
	{"name", SHAPE_STRING, 0, NULL, NULL, 0, 0, NULL},
	{"state", SHAPE_STRING, SHAPE_NEEDED, NULL, "Creating, Ready, Failed, Deleting.", 0, 0,
	 NULL},
	{"message", SHAPE_STRING, 0, NULL, NULL, 0, 0, NULL},
	{"created_at", SHAPE_STRING, 0, NULL, NULL, 0, 0, NULL},
	SHAPE_END,
};

static const struct shape create_input[] = {
	SHAPE_SANDBOX_ID,
	{"name", SHAPE_STRING, 0, NULL, "A name to find it by.", 0, 0, NULL},
	SHAPE_END,
};

static const struct shape list_input[] = {
	{"sandbox_id", SHAPE_STRING, 0, NULL, "Only those of this sandbox.", 0, 0, NULL},
	{"name", SHAPE_STRING, 0, NULL, "Only those with this name.", 0, 0, NULL},
	{"page", SHAPE_INT, 0, "1", "From 1 on.", 1, 1000000, NULL},
	{"page_size", SHAPE_INT, 0, "20", "At most so many.", 1, 200, NULL},
	SHAPE_END,
};

static const struct shape list_output[] = {
	{"snapshots", SHAPE_OBJECTS, SHAPE_NEEDED | SHAPE_OPEN, NULL, NULL, 0, 0, snapshot_members},
	{"total_items", SHAPE_INT, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	{"has_next_page", SHAPE_BOOL, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	SHAPE_END,
};

static const struct shape id_input[] = {
	{"snapshot_id", SHAPE_STRING, SHAPE_NEEDED, NULL, "Id of the snapshot.", 0, 0, NULL},
	SHAPE_END,
};

static const struct shape restore_input[] = {
	{"snapshot_id", SHAPE_STRING, SHAPE_NEEDED, NULL, "Id of the snapshot.", 0, 0, NULL},
	{"timeout_seconds", SHAPE_NUMBER, 0, "600", "The sandbox ends by itself after so long.", 1,
	 31536000, NULL},
	{"env", SHAPE_MAP, 0, NULL, "Environment variables.", 0, 0, NULL},
	{"metadata", SHAPE_MAP, 0, NULL, "Labels that sandbox_list can filter by.", 0, 0, NULL},
	SHAPE_END,
};

static const struct shape restore_output[] = {
	{"sandbox_id", SHAPE_STRING, SHAPE_NEEDED, NULL, "The new sandbox.", 0, 0, NULL},
	{"info", SHAPE_OBJECT, SHAPE_NEEDED | SHAPE_OPEN, NULL, NULL, 0, 0, shape_info},
	SHAPE_END,
};

static void put_snapshot(struct json_writer *w, const osb_snapshot *p)
{
	json_write_object(w);
	json_put_cstr(w, "id", p->id);
	put_text(w, "sandbox_id", p->sandbox_id);
	put_text(w, "name", p->name);
	json_put_cstr(w, "state", p->state);
	put_text(w, "message", p->message);
	put_text(w, "created_at", p->created_at);
	json_write_object_end(w);
}

static int snapshot_create(struct call *c)
{
	osb_sandbox *s = call_any_sandbox(c);
	osb_snapshot *p = NULL, *ready = NULL;

	if (!s ||
	    call_check(c, osb_snapshot_create(s, arg_str(c, "name", NULL), &c->how, &p, &c->e)) < 0)
		return -1;
	call_progress(c, "Taking the snapshot", CALL_PROGRESS_ALWAYS);
	if (call_check(c, osb_snapshot_wait(c->mcp->client, p->id, 0, &c->how, &ready, &c->e)) == 0)
		put_snapshot(&c->w, ready);
	osb_snapshot_free(ready);
	osb_snapshot_free(p);
	return c->why[0] ? -1 : 0;
}

static int snapshot_list(struct call *c)
{
	osb_snapshot_page *page = NULL;
	int r = osb_snapshot_list(c->mcp->client, arg_str(c, "sandbox_id", NULL),
				  arg_str(c, "name", NULL), NULL, (int)arg_int(c->args, "page", 1),
				  (int)arg_int(c->args, "page_size", 20), &c->how, &page, &c->e);

	if (call_check(c, r) < 0)
		return -1;
	json_write_object(&c->w);
	json_write_key(&c->w, "snapshots");
	json_write_array(&c->w);
	for (size_t i = 0; i < page->items_n; i++)
		put_snapshot(&c->w, page->items[i]);
	json_write_array_end(&c->w);
	json_put_int(&c->w, "total_items", page->total_items);
	json_put_bool(&c->w, "has_next_page", page->has_next);
	json_write_object_end(&c->w);
	osb_snapshot_page_free(page);
	return 0;
}

static int snapshot_delete(struct call *c)
{
	const char *id = arg_str(c, "snapshot_id", "");

	if (call_check(c, osb_snapshot_delete(c->mcp->client, id, &c->how, &c->e)) < 0)
		return -1;
	return call_status(c, "deleted");
}

static int snapshot_restore(struct call *c)
{
	osb_create what = OSB_CREATE_INIT;
	osb_sandbox_info *info = NULL;
	osb_sandbox *s = NULL;

	what.snapshot_id = arg_str(c, "snapshot_id", NULL);
	what.timeout_s = (int64_t)arg_number(c->args, "timeout_seconds", 600);
	what.env = arg_pairs(c, c->args, "env", &what.env_n);
	what.metadata = arg_pairs(c, c->args, "metadata", &what.metadata_n);
	call_progress(c, "Restoring the snapshot", CALL_PROGRESS_ALWAYS);
	if (call_check(c, osb_sandbox_create(c->mcp->client, &what, &c->how, &s, &c->e)) < 0)
		return -1;
	c->box = registry_add(c->mcp->registry, s);
	if (!c->box)
		return call_fail(c, "Too many sandboxes are connected: end some with "
				    "sandbox_kill.");
	s = registry_sandbox(c->box);
	if (call_check(c, osb_sandbox_get(s, &c->how, &info, &c->e)) < 0)
		return -1;
	json_write_object(&c->w);
	json_put_cstr(&c->w, "sandbox_id", osb_sandbox_id(s));
	json_write_key(&c->w, "info");
	put_info(&c->w, info);
	json_write_object_end(&c->w);
	osb_sandbox_info_free(info);
	return 0;
}

const struct tool tools_snapshot[] = {
	{"snapshot_create", "Take a snapshot",
	 "Keeps what a sandbox has written to its disk; waits until that is done.", create_input,
	 snapshot_members, 0, snapshot_create},
	{"snapshot_list", "List snapshots", "The server's snapshots, a page at a time.", list_input,
	 list_output, TOOL_READS, snapshot_list},
	{"snapshot_delete", "Delete a snapshot",
	 "Deletes a snapshot; sandboxes made of it live on.", id_input, shape_status, TOOL_DESTROYS,
	 snapshot_delete},
	{"snapshot_restore", "Restore a snapshot",
	 "Makes a new sandbox with what the snapshot has kept, and connects to it.", restore_input,
	 restore_output, 0, snapshot_restore},
	{NULL, NULL, NULL, NULL, NULL, 0, NULL},
};
