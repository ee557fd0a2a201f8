/* failures.c - what goes wrong, and how it is told. */
#include "check.h"

static void configurations(void)
{
	osb_config bad[] = {
		{.domain = "ftp://host"},    {.domain = "host:99999"},
		{.domain = "http://[::1"},   {.protocol = "gopher"},
		{.domain = "unix:relative"}, {.config_file = "/nonexistent/config.toml"},
		{.api_key = "two\nlines"},   {.domain = "host/with space"},
	};
	osb_client *c = NULL;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		bad[i].no_environment = true;
		CHECK(osb_client_new(&bad[i], &c, &e) == OSB_ERR_INVALID && e.message[0]);
	}
}

static void addresses(void)
{
	const struct {
		const char *domain, *url;
	} good[] = {
		{"host", "http://host"},
		{"host:8080/base/", "http://host:8080/base"},
		{"https://host", "https://host"},
		{"[::1]:8080", "http://[::1]:8080"},
		{"unix:/run/server.sock", "unix:/run/server.sock"},
		{"http://host/v1", "http://host/v1"},
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		osb_config config = {
			.domain = good[i].domain, .config_file = "", .no_environment = true};
		osb_client *c = NULL;

		OK(osb_client_new(&config, &c, &e));
		CHECK(strcmp(osb_client_url(c), good[i].url) == 0);
		osb_client_free(c);
	}
}

static void nobody_there(const char *closed)
{
	osb_config config = {.domain = closed, .retries = -1};
	osb_client *c = NULL;

	OK(osb_client_new(&config, &c, &e));
	CHECK(osb_request(c, "GET", "/sandboxes", NULL, NULL, NULL, &e) == OSB_ERR_CONNECT);
	CHECK(strstr(e.message, closed) && e.http_status == 0);
	osb_client_free(c);
}

static void requests(void)
{
	osb_config wrong_key = {.api_key = "wrong"};
	osb_call named = {.request_id = "my-own-id"};
	osb_create what = OSB_CREATE_INIT;
	osb_command command = OSB_COMMAND_INIT;
	osb_client *c = NULL;
	osb_sandbox *s = NULL;
	char *json = NULL;

	OK(osb_client_new(&wrong_key, &c, &e));
	CHECK(osb_request(c, "GET", "/sandboxes", NULL, NULL, &json, &e) == OSB_ERR_UNAUTHORIZED);
	osb_client_free(c);
	c = connect_client();
	CHECK(osb_request(c, "GET", "/sandboxes/none", NULL, &named, &json, &e) ==
	      OSB_ERR_NOT_FOUND);
	CHECK(strcmp(e.request_id, "my-own-id") == 0);
	CHECK(osb_sandbox_create(c, &what, NULL, &s, &e) == OSB_ERR_INVALID);
	what.image = "x";
	what.network_policy = "{not json";
	CHECK(osb_sandbox_create(c, &what, NULL, &s, &e) == OSB_ERR_INVALID);
	what.network_policy = NULL;
	what.timeout_s = 1;
	CHECK(osb_sandbox_create(c, &what, NULL, &s, &e) == OSB_ERR_REFUSED);
	CHECK(e.http_status == 422 || e.http_status == 400);
	OK(osb_sandbox_open(c, "no-such-sandbox", &s, &e));
	command.command = "true";
	CHECK(osb_command_run(s, &command, NULL, NULL, NULL, &e) == OSB_ERR_NOT_FOUND);
	CHECK(osb_command_run(s, &command, NULL, NULL, NULL, NULL) == OSB_ERR_NOT_FOUND);
	osb_sandbox_free(s);
	OK(osb_request(c, "GET", "/sandboxes?pageSize=1", NULL, NULL, &json, &e));
	CHECK(strstr(json, "pagination"));
	osb_free(json);
	osb_client_free(c);
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	configurations();
	addresses();
	nobody_there(argv[1]);
	requests();
	puts("fine");
	return 0;
}
