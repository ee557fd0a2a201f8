/* terminal.c - a terminal: typed into, resized, left, come back to, and its end. */
#include "check.h"

/* Until the text was seen; returns the offset behind it. */
static int64_t expect(osb_terminal *t, const char *text)
{
	static char seen[1 << 16];
	osb_terminal_event event;
	size_t n = 0;

	for (seen[0] = '\0'; !strstr(seen, text);) {
		OK(osb_terminal_read(t, NULL, &event, &e));
		CHECK(event.kind == OSB_TERMINAL_OUTPUT || event.kind == OSB_TERMINAL_NOTHING);
		CHECK(n + event.n < sizeof(seen));
		if (event.n)
			memcpy(seen + n, event.bytes, event.n);
		n += event.n;
		seen[n] = '\0';
	}
	return event.offset;
}

static void type(osb_terminal *t, const char *text)
{
	OK(osb_terminal_write(t, text, strlen(text), NULL, &e));
}

static void expect_exit(osb_terminal *t, int code)
{
	osb_terminal_event event = {0};

	while (event.kind != OSB_TERMINAL_EXIT) {
		OK(osb_terminal_read(t, NULL, &event, &e));
		CHECK(event.kind != OSB_TERMINAL_CLOSED);
	}
	CHECK(event.exit_code == code);
	while (event.kind != OSB_TERMINAL_CLOSED)
		OK(osb_terminal_read(t, NULL, &event, &e));
}

int main(void)
{
	osb_attach back = {0}, second = {0};
	osb_client *c = connect_client();
	osb_sandbox *s = make_sandbox(c);
	osb_terminal *t = NULL, *other = NULL;
	char id[OSB_ID_MAX];

	OK(osb_terminal_create(s, "/usr", NULL, NULL, id, &e));
	OK(osb_terminal_attach(s, id, NULL, NULL, &t, &e));
	CHECK(osb_terminal_fd(t) >= 0);
	OK(osb_terminal_resize(t, 100, 33, NULL, &e));
	type(t, "stty size; pwd; echo sum=$((40+2))\n");
	back.since = expect(t, "sum=42");
	CHECK(osb_terminal_attach(s, id, &second, NULL, &other, &e) == OSB_ERR_CONFLICT);
	osb_terminal_close(t);

	second.takeover = true;
	OK(osb_terminal_attach(s, id, &second, NULL, &t, &e));
	(void)expect(t, "33 100");
	osb_terminal_close(t);

	back.takeover = true;
	OK(osb_terminal_attach(s, id, &back, NULL, &t, &e));
	type(t, "trap 'echo interr''upted' INT; echo be''gun; sleep 1000 & wait\n");
	(void)expect(t, "begun");
	OK(osb_terminal_signal(t, "SIGINT", NULL, &e));
	(void)expect(t, "interrupted");
	type(t, "exit 9\n");
	expect_exit(t, 9);
	osb_terminal_close(t);
	OK(osb_terminal_delete(s, id, NULL, &e));
	CHECK(osb_terminal_attach(s, id, NULL, NULL, &t, &e) == OSB_ERR_NOT_FOUND);
	finish(c, s);
	puts("fine");
	return 0;
}
