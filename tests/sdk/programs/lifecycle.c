/* lifecycle.c - created, found, listed, renewed, paused, resumed, ended. */
#include "check.h"

static void look(osb_client *c, osb_sandbox *s)
{
	const osb_pair wanted[] = {{"purpose", "sdk-test"}};
	const char *states[] = {"Running", NULL};
	osb_list filter = {.states = states, .metadata = wanted, .metadata_n = 1, .page_size = 5};
	osb_sandbox_info *info = NULL;
	osb_sandbox_page *page = NULL;

	OK(osb_sandbox_get(s, NULL, &info, &e));
	CHECK(strcmp(info->id, osb_sandbox_id(s)) == 0 && strcmp(info->state, "Running") == 0);
	CHECK(info->created_at && info->expires_at && info->metadata_n == 1);
	CHECK(strcmp(info->metadata[0].value, "sdk-test") == 0);
	CHECK(strcmp(info->entrypoint[0], "sleep") == 0 && info->entrypoint[2] == NULL);
	CHECK(strstr(info->json, "\"status\""));
	osb_sandbox_info_free(info);
	OK(osb_sandbox_list(c, &filter, NULL, &page, &e));
	CHECK(page->items_n == 1 && page->total_items == 1 && page->page == 1 && !page->has_next);
	CHECK(strcmp(page->items[0]->id, osb_sandbox_id(s)) == 0);
	osb_sandbox_page_free(page);
}

static void change(osb_sandbox *s)
{
	const osb_pair more[] = {{"purpose", NULL}, {"color", "blue"}};
	osb_sandbox_info *info = NULL;
	char *expires = NULL;

	OK(osb_sandbox_renew(s, 3600, NULL, &expires, &e));
	CHECK(strlen(expires) > 18);
	osb_free(expires);
	OK(osb_sandbox_set_metadata(s, more, 2, NULL, &info, &e));
	CHECK(info->metadata_n == 1 && strcmp(info->metadata[0].name, "color") == 0);
	osb_sandbox_info_free(info);
	OK(osb_sandbox_pause(s, NULL, &e));
	OK(osb_sandbox_get(s, NULL, &info, &e));
	CHECK(strcmp(info->state, "Paused") == 0);
	osb_sandbox_info_free(info);
	OK(osb_sandbox_resume(s, NULL, &e));
	OK(osb_sandbox_wait_ready(s, 0, NULL, &e));
}

static int one_sample(void *arg, const osb_metrics *m)
{
	*(osb_metrics *)arg = *m;
	return 1;
}

static void measure(osb_sandbox *s)
{
	osb_metrics m = {0}, w = {0};
	osb_endpoint *p = NULL;

	OK(osb_sandbox_ping(s, NULL, &e));
	OK(osb_sandbox_metrics(s, NULL, &m, &e));
	CHECK(m.cpu_count > 0 && m.memory_total_mib > 0 && m.timestamp_ms > 0);
	CHECK(osb_sandbox_watch_metrics(s, one_sample, &w, NULL, &e) == OSB_ERR_CANCELLED);
	CHECK(w.memory_total_mib > 0);
	OK(osb_sandbox_endpoint(s, 8000, 0, NULL, &p, &e));
	CHECK(strstr(p->url, "http://") == p->url && strstr(p->endpoint, "8000"));
	osb_endpoint_free(p);
}

int main(void)
{
	const char *entrypoint[] = {"sleep", "1000", NULL};
	const osb_pair metadata[] = {{"purpose", "sdk-test"}};
	osb_create what = OSB_CREATE_INIT;
	osb_client *c = connect_client();
	osb_sandbox *s = NULL, *again = NULL;

	what.image = "opensandbox/code-interpreter:latest";
	what.entrypoint = entrypoint;
	what.metadata = metadata;
	what.metadata_n = 1;
	OK(osb_sandbox_create(c, &what, NULL, &s, &e));
	look(c, s);
	change(s);
	measure(s);
	OK(osb_sandbox_open(c, osb_sandbox_id(s), &again, &e));
	OK(osb_sandbox_ping(again, NULL, &e));
	OK(osb_sandbox_kill(s, NULL, &e));
	CHECK(osb_sandbox_kill(again, NULL, &e) == OSB_ERR_NOT_FOUND);
	CHECK(e.http_status == 404 && e.api_code[0] && e.request_id[0]);
	osb_sandbox_free(again);
	osb_sandbox_free(s);
	osb_client_free(c);
	puts("fine");
	return 0;
}
