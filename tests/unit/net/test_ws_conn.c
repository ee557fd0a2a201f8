/*
 * test_ws_conn.c - WebSocket messages, fragments, control frames, violations and timeouts.
 */
#include "net_test.h"

#include "base/fd.h"
#include "net/ws_conn.h"

struct probe {
	struct loop *loop;
	struct ws_conn *conn;
	bool is_client; /* the side under test */
	int peer;
	struct buf got; /* "T:text|B:bytes|" as told */
	struct buf wire;
	int messages, closed_n, drained_n;
	unsigned code;
	char reason[128];
	bool pause_at_message, free_at_message;
	size_t wait_for;
};

static void on_message(void *arg, enum ws_opcode opcode, struct view data)
{
	struct probe *p = arg;

	p->messages++;
	assert_int_equal(buf_append_str(&p->got, opcode == WS_TEXT ? "T:" : "B:"), 0);
	assert_int_equal(buf_append_view(&p->got, data), 0);
	assert_int_equal(buf_append_char(&p->got, '|'), 0);
	if (p->pause_at_message)
		ws_conn_pause(p->conn);
	if (p->free_at_message) {
		ws_conn_free(p->conn);
		p->conn = NULL;
	}
}

static void on_drained(void *arg)
{
	((struct probe *)arg)->drained_n++;
}

static void on_closed(void *arg, unsigned code, struct view reason)
{
	struct probe *p = arg;

	p->closed_n++;
	p->code = code;
	snprintf(p->reason, sizeof(p->reason), VIEW_FMT, VIEW_ARG(reason));
	ws_conn_free(p->conn);
	p->conn = NULL;
}

static const struct ws_events events = {on_message, on_drained, on_closed};

static const struct ws_options plain = {.message_max = 1 << 20, .queue_high = 64 * 1024};

static void open_conn(struct probe *p, bool is_client, const struct ws_options *o, struct buf *rest)
{
	struct err e = ERR_NONE;
	int fds[2];

	*p = (struct probe){.is_client = is_client};
	buf_init(&p->got, 64 << 20);
	buf_init(&p->wire, 64 << 20);
	test_pair(fds);
	p->peer = fds[1];
	assert_int_equal(loop_new(&p->loop, &e), 0);
	p->conn = ws_conn_new(p->loop, fds[0], rest, is_client, o, &events, p);
}

static void close_conn(struct probe *p)
{
	ws_conn_free(p->conn);
	fd_close(p->peer);
	buf_done(&p->got);
	buf_done(&p->wire);
	loop_free(p->loop);
}

/* A frame as the far end sends it: masked unless the far end is a server. */
static void add_frame(struct probe *p, struct buf *out, bool fin, enum ws_opcode opcode,
		      struct view data)
{
	static const unsigned char mask[4] = {1, 2, 3, 4};
	char *payload;

	assert_int_equal(ws_frame_format(out, fin, opcode, data.len, p->is_client ? NULL : mask),
			 0);
	payload = buf_reserve(out, data.len + 1);
	memcpy(payload, data.p ? data.p : "", data.len);
	if (!p->is_client)
		ws_mask(payload, data.len, mask, 0);
	buf_commit(out, data.len);
}

static void say_frame(struct probe *p, bool fin, enum ws_opcode opcode, const char *text)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(8 << 20);

	add_frame(p, &out, fin, opcode, view_of(text));
	peer_send(p->peer, buf_view(&out).p, out.len);
}

/* The next frame on the wire, unmasked; false when there is none. */
static bool next_frame(struct probe *p, struct ws_frame *ret, char *payload, size_t size)
{
	struct err e = ERR_NONE;

	if (ws_frame_parse(buf_view(&p->wire), p->is_client, ret, &e) != 1 ||
	    p->wire.len < ret->header_len + ret->length)
		return false;
	assert_true(ret->length < size);
	buf_consume(&p->wire, ret->header_len);
	memcpy(payload, buf_view(&p->wire).p, ret->length);
	payload[ret->length] = '\0';
	if (ret->masked)
		ws_mask(payload, ret->length, ret->mask, 0);
	buf_consume(&p->wire, ret->length);
	return true;
}

static bool is_closed(void *arg)
{
	struct probe *p = arg;

	(void)peer_take(p->peer, &p->wire);
	return p->closed_n > 0;
}

static bool has_messages(void *arg)
{
	struct probe *p = arg;

	(void)peer_take(p->peer, &p->wire);
	return (size_t)p->messages >= p->wait_for;
}

static bool has_wire(void *arg)
{
	struct probe *p = arg;

	(void)peer_take(p->peer, &p->wire);
	return p->wire.len >= p->wait_for;
}

static bool at_once(void *arg)
{
	return true;
}

static void expect_frame(struct probe *p, enum ws_opcode opcode, const char *text)
{
	struct ws_frame f;
	char payload[256];

	p->wait_for = 2 + strlen(text) + (p->is_client ? 4 : 0);
	spin(p->loop, has_wire, p);
	assert_true(next_frame(p, &f, payload, sizeof(payload)));
	assert_int_equal(f.opcode, opcode);
	assert_int_equal(f.masked, p->is_client);
	assert_string_equal(payload, text);
}

static void receives_whole_fragmented_and_interleaved_messages(void **state)
{
	for (int is_client = 0; is_client < 2; is_client++) {
		struct probe p;

		open_conn(&p, is_client, &plain, NULL);
		say_frame(&p, true, WS_TEXT, "one");
		say_frame(&p, false, WS_BINARY, "tw");
		say_frame(&p, true, WS_PING, "are you there");
		say_frame(&p, false, WS_CONT, "");
		say_frame(&p, true, WS_PONG, "unasked");
		say_frame(&p, true, WS_CONT, "o");
		say_frame(&p, true, WS_TEXT, "");
		/* U+20AC, cut inside */
		say_frame(&p, false, WS_TEXT, "\xe2");
		say_frame(&p, false, WS_CONT, "\x82");
		say_frame(&p, true, WS_CONT, "\xac");
		p.wait_for = 4;
		spin(p.loop, has_messages, &p);
		assert_string_equal(buf_str(&p.got), "T:one|B:two|T:|T:\xe2\x82\xac|");
		expect_frame(&p, WS_PONG, "are you there");
		close_conn(&p);
	}
}

static void understands_bytes_one_by_one_and_bytes_read_before(void **state)
{
	struct buf rest = BUF_INIT(64);
	osb_cleanup(buf_done) struct buf out = BUF_INIT(1024);
	struct probe p = {0};

	add_frame(&p, &rest, true, WS_TEXT, VIEW("early"));
	open_conn(&p, false, &plain, &rest);
	add_frame(&p, &out, false, WS_TEXT, VIEW("a\xc3"));
	add_frame(&p, &out, true, WS_CONT, VIEW("\xa4z"));
	for (size_t i = 0; i < out.len; i++) {
		peer_send(p.peer, buf_view(&out).p + i, 1);
		spin(p.loop, at_once, NULL);
	}
	p.wait_for = 2;
	spin(p.loop, has_messages, &p);
	assert_string_equal(buf_str(&p.got), "T:early|T:a\xc3\xa4z|");
	close_conn(&p);
}

static void closes_with_the_code_that_names_the_violation(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		unsigned code;
	} cases[] = {
		{"\xc1\x80\0\0\0\0", 6, 1002},			     /* reserved bit */
		{"\x83\x80\0\0\0\0", 6, 1002},			     /* reserved opcode */
		{"\x81\x01x", 3, 1002},				     /* no mask */
		{"\x80\x80\0\0\0\0", 6, 1002},			     /* continuation of nothing */
		{"\x01\x80\0\0\0\0\x81\x80\0\0\0\0", 12, 1002},	     /* a message inside another */
		{"\x09\x80\0\0\0\0", 6, 1002},			     /* fragmented ping */
		{"\x89\xfe\0\x7e\0\0\0\0", 8, 1002},		     /* long ping */
		{"\x81\xfe\0\x01\0\0\0\0x", 9, 1002},		     /* non-minimal length */
		{"\x81\x81\0\0\0\0\xff", 7, 1007},		     /* not UTF-8 */
		{"\x81\x81\0\0\0\0\xc3", 7, 1007},		     /* ends inside a character */
		{"\x01\x81\0\0\0\0\xc3\x80\x81\0\0\0\0x", 14, 1007}, /* across fragments */
		{"\x01\x81\0\0\0\0\xff", 7, 1007},		     /* before the message ends */
		{"\x82\xff\0\0\0\0\x7f\xff\xff\xff\0\0\0\0", 14, 1009},
		{"\x82\xff\0\0\0\0\0\x10\0\x01\0\0\0\0", 14, 1009},
		{"\x88\x81\0\0\0\0x", 7, 1002},		   /* half a close code */
		{"\x88\x82\0\0\0\0\x03\xed", 8, 1002},	   /* 1005 is not sent */
		{"\x88\x82\0\0\0\0\0\0", 8, 1002},	   /* 0 */
		{"\x88\x83\0\0\0\0\x03\xe8\xff", 9, 1007}, /* reason not UTF-8 */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ws_frame f;
		char payload[256];
		struct probe p;

		open_conn(&p, false, &plain, NULL);
		peer_send(p.peer, cases[i].bytes, cases[i].n);
		p.wait_for = 4;
		spin(p.loop, has_wire, &p);
		assert_true(next_frame(&p, &f, payload, sizeof(payload)));
		assert_int_equal(f.opcode, WS_CLOSE);
		if (((unsigned char)payload[0] << 8 | (unsigned char)payload[1]) !=
		    (int)cases[i].code)
			fail_msg("case %zu: close code %d", i,
				 (unsigned char)payload[0] << 8 | (unsigned char)payload[1]);
		shutdown(p.peer, SHUT_WR);
		spin(p.loop, is_closed, &p);
		assert_int_equal(p.code, cases[i].code);
		assert_int_equal(p.messages, 0);
		close_conn(&p);
	}
}

static void answers_a_close_and_tells_its_code_and_reason(void **state)
{
	static const struct {
		const char *payload;
		size_t n;
		unsigned code;
		const char *reason, *answer;
	} cases[] = {
		{"\x03\xe8"
		 "bye",
		 5, 1000, "bye", "\x03\xe8"},
		{"\x0f\xa1", 2, 4001, "", "\x0f\xa1"},
		{"", 0, 1005, "", ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		osb_cleanup(buf_done) struct buf out = BUF_INIT(1024);
		struct probe p;

		open_conn(&p, i == 1, &plain, NULL);
		add_frame(&p, &out, true, WS_CLOSE, view_mem(cases[i].payload, cases[i].n));
		add_frame(&p, &out, true, WS_TEXT, VIEW("after the end"));
		peer_send(p.peer, buf_view(&out).p, out.len);
		expect_frame(&p, WS_CLOSE, cases[i].answer);
		shutdown(p.peer, SHUT_WR);
		spin(p.loop, is_closed, &p);
		assert_int_equal(p.code, cases[i].code);
		assert_string_equal(p.reason, cases[i].reason);
		assert_int_equal(p.messages, 0);
		close_conn(&p);
	}
}

static void waits_for_the_answer_to_its_own_close(void **state)
{
	struct probe p;

	open_conn(&p, false, &plain, NULL);
	ws_conn_close(p.conn, 4001, "TAKEN_OVER");
	assert_true(ws_conn_send(p.conn, WS_TEXT, VIEW("too late")));
	expect_frame(&p, WS_CLOSE, "\x0f\xa1TAKEN_OVER");
	say_frame(&p, true, WS_TEXT, "crossing");
	say_frame(&p, true, WS_CLOSE, "\x0f\xa1");
	shutdown(p.peer, SHUT_WR);
	spin(p.loop, is_closed, &p);
	assert_int_equal(p.code, 4001);
	assert_int_equal(p.messages, 0);
	assert_int_equal(p.wire.len, 0);
	close_conn(&p);
}

static void tells_1006_when_the_peer_just_leaves(void **state)
{
	struct probe p;

	open_conn(&p, false, &plain, NULL);
	say_frame(&p, true, WS_TEXT, "x");
	shutdown(p.peer, SHUT_RDWR);
	spin(p.loop, is_closed, &p);
	assert_int_equal(p.code, 1006);
	assert_int_equal(p.messages, 1);
	close_conn(&p);
}

static void sends_frames_of_every_length_class(void **state)
{
	static const size_t sizes[] = {0, 125, 126, 65535, 65536, 300000};
	static char bytes[300000];

	for (int is_client = 0; is_client < 2; is_client++) {
		struct ws_options o = plain;
		struct probe p;

		o.queue_high = 1 << 20;
		open_conn(&p, is_client, &o, NULL);
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (char)(i * 7);
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			static char payload[300001];
			struct ws_frame f;
			size_t half = sizes[i] / 2;

			assert_true(ws_conn_send2(p.conn, WS_BINARY, view_mem(bytes, half),
						  view_mem(bytes + half, sizes[i] - half)));
			p.wait_for = sizes[i] + 2 + (is_client ? 4 : 0) + (sizes[i] > 125 ? 2 : 0) +
				     (sizes[i] > 65535 ? 6 : 0);
			spin(p.loop, has_wire, &p);
			assert_true(next_frame(&p, &f, payload, sizeof(payload)));
			assert_int_equal(f.length, sizes[i]);
			assert_memory_equal(payload, bytes, sizes[i]);
		}
		close_conn(&p);
	}
}

static bool drained(void *arg)
{
	struct probe *p = arg;

	(void)peer_take(p->peer, &p->wire);
	return p->drained_n > 0;
}

static void tells_the_sender_to_stop_and_answers_only_the_newest_ping(void **state)
{
	static const char block[65536];
	struct probe p;
	int n = 0;

	open_conn(&p, false, &plain, NULL);
	while (ws_conn_send(p.conn, WS_BINARY, view_mem(block, sizeof(block))))
		assert_true(++n < 1000);
	for (int i = 0; i < 200; i++)
		say_frame(&p, true, WS_PING, "old");
	say_frame(&p, true, WS_PING, "new");
	for (int i = 0; i < 10; i++)
		spin(p.loop, at_once, NULL);
	spin(p.loop, drained, &p);
	p.wait_for = ((size_t)n + 1) * (sizeof(block) + 10) + 5;
	spin(p.loop, has_wire, &p);
	buf_consume(&p.wire, ((size_t)n + 1) * (sizeof(block) + 10));
	expect_frame(&p, WS_PONG, "new");
	assert_int_equal(p.wire.len, 0);
	close_conn(&p);
}

static void gives_no_message_while_paused(void **state)
{
	struct probe p;

	open_conn(&p, false, &plain, NULL);
	p.pause_at_message = true;
	say_frame(&p, true, WS_TEXT, "a");
	say_frame(&p, true, WS_TEXT, "b");
	p.wait_for = 1;
	spin(p.loop, has_messages, &p);
	spin(p.loop, at_once, NULL);
	assert_int_equal(p.messages, 1);
	ws_conn_resume(p.conn);
	assert_int_equal(p.messages, 1);
	p.wait_for = 2;
	spin(p.loop, has_messages, &p);
	close_conn(&p);
}

static bool is_freed(void *arg)
{
	return ((struct probe *)arg)->conn == NULL;
}

static void may_be_freed_in_its_message_callback(void **state)
{
	struct probe p;

	open_conn(&p, false, &plain, NULL);
	p.free_at_message = true;
	say_frame(&p, false, WS_TEXT, "a");
	say_frame(&p, true, WS_CONT, "b");
	say_frame(&p, true, WS_TEXT, "c");
	spin(p.loop, is_freed, &p);
	assert_int_equal(p.messages, 1);
	assert_int_equal(p.closed_n, 0);
	close_conn(&p);
}

static void pings_a_quiet_peer(void **state)
{
	struct ws_options o = plain;
	struct probe p;

	o.ping_ms = 5;
	open_conn(&p, false, &o, NULL);
	expect_frame(&p, WS_PING, "");
	expect_frame(&p, WS_PING, "");
	close_conn(&p);
}

static void gives_a_silent_peer_up(void **state)
{
	struct ws_options o = plain;
	struct probe p;

	o.read_timeout_ms = 20;
	open_conn(&p, false, &o, NULL);
	spin(p.loop, is_closed, &p);
	assert_int_equal(p.code, 1006);
	close_conn(&p);
}

/* Seen by a process that was itself frozen: its timers are due before it has read anything. */
static void hears_a_peer_out_after_having_been_stopped(void **state)
{
	struct ws_options o = plain;
	struct probe p;

	o.read_timeout_ms = 20;
	open_conn(&p, false, &o, NULL);
	usleep(400 * 1000);
	expect_frame(&p, WS_PING, "");
	assert_int_equal(p.closed_n, 0);
	close_conn(&p);
}

static bool is_told_closed(void *arg)
{
	return ((struct probe *)arg)->closed_n > 0;
}

static void gives_a_peer_that_takes_nothing_up(void **state)
{
	static const char block[65536];
	struct ws_options o = plain;
	struct probe p;

	o.write_timeout_ms = 20;
	open_conn(&p, false, &o, NULL);
	while (ws_conn_send(p.conn, WS_BINARY, view_mem(block, sizeof(block))))
		;
	spin(p.loop, is_told_closed, &p);
	assert_int_equal(p.code, 1006);
	close_conn(&p);
}

static void an_owner_that_never_stops_is_bounded(void **state)
{
	static const char block[1 << 20];
	struct probe p;

	open_conn(&p, false, &plain, NULL);
	for (int i = 0; i < 40; i++)
		(void)ws_conn_send(p.conn, WS_BINARY, view_mem(block, sizeof(block)));
	spin(p.loop, is_told_closed, &p);
	assert_int_equal(p.code, 1006);
	close_conn(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receives_whole_fragmented_and_interleaved_messages),
		cmocka_unit_test(understands_bytes_one_by_one_and_bytes_read_before),
		cmocka_unit_test(closes_with_the_code_that_names_the_violation),
		cmocka_unit_test(answers_a_close_and_tells_its_code_and_reason),
		cmocka_unit_test(waits_for_the_answer_to_its_own_close),
		cmocka_unit_test(tells_1006_when_the_peer_just_leaves),
		cmocka_unit_test(sends_frames_of_every_length_class),
		cmocka_unit_test(tells_the_sender_to_stop_and_answers_only_the_newest_ping),
		cmocka_unit_test(gives_no_message_while_paused),
		cmocka_unit_test(may_be_freed_in_its_message_callback),
		cmocka_unit_test(pings_a_quiet_peer),
		cmocka_unit_test(gives_a_silent_peer_up),
		cmocka_unit_test(hears_a_peer_out_after_having_been_stopped),
		cmocka_unit_test(gives_a_peer_that_takes_nothing_up),
		cmocka_unit_test(an_owner_that_never_stops_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
