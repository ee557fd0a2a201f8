/* network.c - a policy: asked for, added to, taken from, replaced; diagnostics. */
#include "check.h"

static void holds(osb_sandbox *s, const char *text, int wanted)
{
	char *json = NULL;

	OK(osb_policy_get(s, NULL, &json, &e));
	CHECK(!strstr(json, text) == !wanted);
	osb_free(json);
}

static void policy(osb_sandbox *s)
{
	const osb_rule more[] = {{true, "*.example.org"}, {false, "203.0.113.0/24"}};
	const char *gone[] = {"example.com", NULL};
	char *json = NULL;

	holds(s, "example.com", 1);
	OK(osb_policy_add(s, more, 2, NULL, &json, &e));
	CHECK(strstr(json, "enforcing"));
	osb_free(json);
	holds(s, "*.example.org", 1);
	OK(osb_policy_remove(s, gone, NULL, NULL, &e));
	holds(s, "example.com", 0);
	OK(osb_policy_set(s, "{\"defaultAction\":\"allow\",\"egress\":[]}", NULL, NULL, &e));
	holds(s, "allow_all", 1);
	CHECK(osb_policy_set(s, "{", NULL, NULL, &e) == OSB_ERR_INVALID);
	CHECK(osb_policy_add(s, (osb_rule[]){{true, ""}}, 1, NULL, NULL, &e) == OSB_ERR_REFUSED);
	CHECK(e.http_status == 400 && e.message[0]);
}

static void vault(osb_sandbox *s)
{
	char *json = NULL;

	CHECK(osb_vault_get(s, NULL, NULL, NULL, &json, &e) == OSB_ERR_NOT_FOUND);
	CHECK(osb_vault_create(s, "{\"credentials\":[],\"bindings\":[]}", NULL, &json, &e) ==
	      OSB_ERR_CONFLICT);
	CHECK(e.http_status == 412);
	CHECK(osb_vault_patch(s, "not json", NULL, &json, &e) == OSB_ERR_INVALID);
}

static void diagnostics(osb_sandbox *s)
{
	char *text = NULL;

	OK(osb_diagnostics(s, "events", "all", NULL, &text, &e));
	CHECK(strstr(text, "\"delivery\""));
	osb_free(text);
	OK(osb_diagnostics_text(s, "logs?tail=5", NULL, &text, &e));
	osb_free(text);
	OK(osb_diagnostics_text(s, "inspect", NULL, &text, &e));
	CHECK(strstr(text, osb_sandbox_id(s)));
	osb_free(text);
}

int main(void)
{
	osb_create what = OSB_CREATE_INIT;
	osb_client *c = connect_client();
	osb_sandbox *s = NULL;

	what.image = "opensandbox/code-interpreter:latest";
	what.network_policy = "{\"defaultAction\":\"deny\",\"egress\":[{\"action\":\"allow\","
			      "\"target\":\"example.com\"}]}";
	OK(osb_sandbox_create(c, &what, NULL, &s, &e));
	policy(s);
	vault(s);
	diagnostics(s);
	finish(c, s);
	puts("fine");
	return 0;
}
