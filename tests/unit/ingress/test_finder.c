/*
 * test_finder.c - servers are asked in order, answers are remembered, requests share questions.
 */
#include "../net/net_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/strv.h"
#include "ingress/finder.h"
#include "ingress/upstreams.h"
#include "net/http_server.h"
#include "policy/preview.h"

/* A server that knows one sandbox. */
struct fake {
	struct http_server *http;
	const char *knows, *token;
	int status; /* of everything, unless 0 */
	int asked;
	char target[256], key[64];
};

struct stage {
	struct loop *loop;
	struct fake fakes[2];
	struct strv urls;
	struct upstreams *upstreams;
	struct finder *finder;
	int told;
	struct found_at at;
	char token[64], why[512];
};

static void answer(struct http_exchange *x, void *arg)
{
	struct fake *f = arg;
	struct view key = VIEW_NONE;
	char body[256];

	f->asked++;
	(void)http_header(x, "OPEN-SANDBOX-API-KEY", &key);
	snprintf(f->target, sizeof(f->target), VIEW_FMT, VIEW_ARG(http_head(x)->target));
	snprintf(f->key, sizeof(f->key), VIEW_FMT, VIEW_ARG(key));
	if (f->status) {
		http_reply(x, f->status, "application/json", VIEW("{}"));
	} else if (!f->knows || !strstr(f->target, f->knows)) {
		http_reply(x, 404, "application/json", VIEW("{\"code\":\"x\",\"message\":\"x\"}"));
	} else {
		snprintf(body, sizeof(body), "{\"endpoint\":\"e\",\"headers\":{\"%s\":\"%s\"}}",
			 PREVIEW_SECURE_HEADER, f->token ? f->token : "");
		http_reply(x, 200, "application/json", view_of(body));
	}
}

static void open_stage(struct stage *s)
{
	struct err e = ERR_NONE;

	*s = (struct stage){0};
	assert_int_equal(loop_new(&s->loop, &e), 0);
	for (size_t i = 0; i < ARRAY_LEN(s->fakes); i++) {
		struct fake *f = &s->fakes[i];
		char url[64];

		assert_int_equal(http_server_new(s->loop, NULL, answer, f, &f->http, &e), 0);
		assert_int_equal(http_server_listen_tcp(f->http, "127.0.0.1", 0, &e), 0);
		snprintf(url, sizeof(url), "http://127.0.0.1:%u", http_server_port(f->http));
		strv_add(&s->urls, url);
	}
	assert_int_equal(upstreams_new(&s->urls, NULL, &s->upstreams, &e), 0);
	upstreams_begin(s->upstreams, s->loop);
	s->finder = finder_new(s->loop, s->upstreams, "the key");
}

static void close_stage(struct stage *s)
{
	finder_free(s->finder);
	upstreams_free(s->upstreams);
	strv_done(&s->urls);
	for (size_t i = 0; i < ARRAY_LEN(s->fakes); i++)
		http_server_free(s->fakes[i].http);
	loop_free(s->loop);
}

static void found(void *arg, const struct found_at *at)
{
	struct stage *s = arg;

	s->told++;
	s->at = *at;
	snprintf(s->token, sizeof(s->token), VIEW_FMT, VIEW_ARG(at->token));
	snprintf(s->why, sizeof(s->why), "%s", at->why ? at->why : "");
}

static bool was_told(void *arg)
{
	return ((struct stage *)arg)->told > 0;
}

static enum found find(struct stage *s, const char *id)
{
	s->told = 0;
	if (finder_find(s->finder, view_of(id), 80, found, s))
		spin(s->loop, was_told, s);
	assert_int_equal(s->told, 1);
	return s->at.what;
}

static void asks_in_order_and_remembers(void **state)
{
	struct stage s;

	open_stage(&s);
	s.fakes[1].knows = "box-1";
	s.fakes[1].token = "sesame";
	assert_int_equal(find(&s, "box-1"), FOUND);
	assert_int_equal(s.at.server, 1);
	assert_string_equal(s.token, "sesame");
	assert_string_equal(s.fakes[0].target,
			    "/v1/sandboxes/box-1/endpoints/80?use_server_proxy=true");
	assert_string_equal(s.fakes[0].key, "the key");
	assert_int_equal(find(&s, "box-1"), FOUND);
	assert_int_equal(s.fakes[0].asked + s.fakes[1].asked, 2);
	/* Who had it last is asked first. */
	finder_forget(s.finder, VIEW("box-1"));
	assert_int_equal(find(&s, "box-1"), FOUND);
	assert_int_equal(s.fakes[0].asked, 1);
	assert_int_equal(s.fakes[1].asked, 2);
	/* It has moved: all others are asked then. */
	s.fakes[0].knows = "box-1";
	s.fakes[1].knows = NULL;
	finder_forget(s.finder, VIEW("box-1"));
	assert_int_equal(find(&s, "box-1"), FOUND);
	assert_int_equal(s.at.server, 0);
	assert_string_equal(s.token, "");
	close_stage(&s);
}

static void nobody_has_it(void **state)
{
	struct stage s;

	open_stage(&s);
	assert_int_equal(find(&s, "box/../x y"), FOUND_NOWHERE);
	assert_string_equal(s.fakes[1].target,
			    "/v1/sandboxes/box%2F..%2Fx%20y/endpoints/80?use_server_proxy=true");
	assert_int_equal(find(&s, "box/../x y"), FOUND_NOWHERE);
	assert_int_equal(s.fakes[1].asked, 1);
	close_stage(&s);
}

static void a_server_that_fails_is_no_answer(void **state)
{
	struct stage s;

	open_stage(&s);
	s.fakes[0].status = 500;
	assert_int_equal(find(&s, "box"), FOUND_ERROR);
	assert_true(s.why[0] != '\0');
	s.fakes[0].status = 401;
	assert_int_equal(find(&s, "box"), FOUND_ERROR);
	assert_non_null(strstr(s.why, "API key"));
	/* Another has it all the same; and what is no endpoint is none. */
	s.fakes[1].knows = "box";
	assert_int_equal(find(&s, "box"), FOUND);
	s.fakes[1].status = 200;
	finder_forget(s.finder, VIEW("box"));
	assert_int_equal(find(&s, "box"), FOUND_ERROR);
	close_stage(&s);
}

static void one_question_for_many(void **state)
{
	struct finding *all[50];
	struct stage s;

	open_stage(&s);
	s.fakes[0].knows = "box";
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		all[i] = finder_find(s.finder, VIEW("box"), 80, found, &s);
		assert_non_null(all[i]);
	}
	finding_cancel(all[7]);
	finding_cancel(NULL);
	spin(s.loop, was_told, &s);
	assert_int_equal(s.told, ARRAY_LEN(all) - 1);
	assert_int_equal(s.fakes[0].asked, 1);
	/* What still waits at the end is not told. */
	s.told = 0;
	assert_non_null(finder_find(s.finder, VIEW("other"), 80, found, &s));
	close_stage(&s);
	assert_int_equal(s.told, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(asks_in_order_and_remembers),
		cmocka_unit_test(nobody_has_it),
		cmocka_unit_test(a_server_that_fails_is_no_answer),
		cmocka_unit_test(one_question_for_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
