/* snapshots.c - a snapshot is taken, found, restored and deleted. */
#include "check.h"

static void look(osb_client *c, osb_sandbox *s, const char *id)
{
	osb_snapshot_page *page = NULL;

	OK(osb_snapshot_list(c, osb_sandbox_id(s), "kept", NULL, 0, 0, NULL, &page, &e));
	CHECK(page->items_n == 1 && strcmp(page->items[0]->id, id) == 0 && page->total_items == 1);
	CHECK(strcmp(page->items[0]->sandbox_id, osb_sandbox_id(s)) == 0);
	osb_snapshot_page_free(page);
	OK(osb_snapshot_list(c, osb_sandbox_id(s), "other", NULL, 0, 0, NULL, &page, &e));
	CHECK(page->items_n == 0);
	osb_snapshot_page_free(page);
}

static void restore(osb_client *c, const char *id)
{
	osb_create what = OSB_CREATE_INIT;
	osb_sandbox *again = NULL;
	char *bytes = NULL;
	size_t n;

	what.snapshot_id = id;
	OK(osb_sandbox_create(c, &what, NULL, &again, &e));
	OK(osb_file_read(again, "/root/kept", NULL, &bytes, &n, &e));
	CHECK(n == 4 && memcmp(bytes, "kept", 4) == 0);
	osb_free(bytes);
	CHECK(osb_snapshot_delete(c, id, NULL, &e) == OSB_ERR_CONFLICT);
	OK(osb_sandbox_kill(again, NULL, &e));
	osb_sandbox_free(again);
}

int main(void)
{
	osb_client *c = connect_client();
	osb_sandbox *s = make_sandbox(c);
	osb_snapshot *snapshot = NULL, *ready = NULL;

	OK(osb_file_write(s, "/root/kept", "kept", 4, NULL, NULL, &e));
	OK(osb_snapshot_create(s, "kept", NULL, &snapshot, &e));
	OK(osb_snapshot_wait(c, snapshot->id, 0, NULL, &ready, &e));
	CHECK(strcmp(ready->state, "Ready") == 0 && strcmp(ready->name, "kept") == 0);
	osb_snapshot_free(ready);
	look(c, s, snapshot->id);
	restore(c, snapshot->id);
	OK(osb_snapshot_delete(c, snapshot->id, NULL, &e));
	CHECK(osb_snapshot_get(c, snapshot->id, NULL, &ready, &e) == OSB_ERR_NOT_FOUND);
	CHECK(osb_snapshot_get(c, "", NULL, &ready, &e) == OSB_ERR_INVALID);
	osb_snapshot_free(snapshot);
	finish(c, s);
	puts("fine");
	return 0;
}
