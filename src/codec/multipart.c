/*
 * codec/multipart.c - multipart/form-data (RFC 7578, RFC 2046), incrementally.
 *
 * A delimiter begins with CR and holds no other, so a broken match can only start again at the
 * byte that broke it: the bytes held back are always a prefix of the delimiter itself and need
 * no buffer of their own.
 */
#include "codec/multipart.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "codec/http_char.h"
#include "codec/multipart_header.h"

#define HEADERS_MAX 16384

enum state {
	PREAMBLE,
	DATA,
	AFTER_DELIMITER, /* "-" makes it the last, padding and CRLF begin a part */
	PADDING,
	PADDING_LF,
	HEADERS,
	CLOSE_DASH, /* one "-" was seen */
	CLOSE_PADDING,
	CLOSE_LF,
	EPILOGUE,
	FAILED,
};

struct multipart {
	const struct multipart_events *events;
	void *arg;
	enum state state;
	char delimiter[4 + MULTIPART_BOUNDARY_MAX]; /* CR LF "--" boundary */
	size_t delimiter_len;
	size_t matched;	 /* bytes of the delimiter at the end of what was fed */
	size_t borrowed; /* of these, how many are the line end before the body, not body bytes */
	struct buf headers;
	size_t line_start; /* of the header line being read */
};

struct multipart *multipart_new(struct view boundary, const struct multipart_events *events,
				void *arg)
{
	struct multipart *m;

	if (boundary.len == 0 || boundary.len > MULTIPART_BOUNDARY_MAX ||
	    !http_char_all(boundary, HTTP_BOUNDARY))
		return NULL;
	m = mem_new(struct multipart);
	m->events = events;
	m->arg = arg;
	memcpy(m->delimiter, "\r\n--", 4);
	memcpy(m->delimiter + 4, boundary.p, boundary.len);
	m->delimiter_len = 4 + boundary.len;
	/* The first delimiter needs no line before it. */
	m->matched = m->borrowed = 2;
	buf_init(&m->headers, HEADERS_MAX);
	return m;
}

void multipart_free(struct multipart *m)
{
	if (!m)
		return;
	buf_done(&m->headers);
	free(m);
}

bool multipart_complete(const struct multipart *m)
{
	return m->state >= CLOSE_PADDING && m->state <= EPILOGUE;
}

static int give_data(struct multipart *m, struct view bytes)
{
	if (m->state == PREAMBLE || bytes.len == 0)
		return 0;
	return m->events->data(m->arg, bytes);
}

/* Goes on with a delimiter that began in an earlier feed.  1 = it is complete. */
static int continue_match(struct multipart *m, struct view *in)
{
	size_t n = MIN(in->len, m->delimiter_len - m->matched), same = 0;
	struct view held;

	while (same < n && in->p[same] == m->delimiter[m->matched + same])
		same++;
	m->matched += same;
	*in = view_skip(*in, same);
	if (m->matched == m->delimiter_len)
		return 1;
	if (same == n)
		return 0;

	held = view_skip(view_mem(m->delimiter, m->matched), m->borrowed);
	m->matched = m->borrowed = 0;
	return give_data(m, held);
}

/* How many bytes at the end of `in` could begin a delimiter: it must start at the last CR. */
static size_t open_match(const struct multipart *m, struct view in)
{
	struct view tail = view_skip(in, in.len - MIN(in.len, m->delimiter_len - 1));
	const char *cr = tail.len > 0 ? memrchr(tail.p, '\r', tail.len) : NULL;
	size_t n;

	if (!cr)
		return 0;
	n = (size_t)(tail.p + tail.len - cr);
	return memcmp(cr, m->delimiter, n) == 0 ? n : 0;
}

/* Looks for the next delimiter; what is before it is data.  1 = it is complete. */
static int find_delimiter(struct multipart *m, struct view *in)
{
	const char *hit;
	struct view data;
	int r;

	if (m->matched > 0) {
		r = continue_match(m, in);
		if (r != 0 || in->len == 0)
			return r;
	}
	hit = memmem(in->p, in->len, m->delimiter, m->delimiter_len);
	if (hit) {
		data = view_first(*in, (size_t)(hit - in->p));
		*in = view_skip(*in, data.len + m->delimiter_len);
		r = give_data(m, data);
		return r < 0 ? r : 1;
	}
	m->matched = open_match(m, *in);
	data = view_first(*in, in->len - m->matched);
	*in = VIEW_NONE;
	return give_data(m, data);
}

static int scan_body(struct multipart *m, struct view *in)
{
	int r = find_delimiter(m, in);

	if (r <= 0)
		return r;
	if (m->state == DATA) {
		r = m->events->part_end(m->arg);
		if (r < 0)
			return r;
	}
	m->matched = m->borrowed = 0;
	buf_clear(&m->headers);
	m->line_start = 0;
	m->state = AFTER_DELIMITER;
	return 0;
}

/* The rest of a delimiter's line, byte by byte. */
static int scan_delimiter_line(struct multipart *m, struct view *in, struct err *e)
{
	char c = in->p[0];
	bool blank = c == ' ' || c == '\t';

	*in = view_skip(*in, 1);
	if (m->state == AFTER_DELIMITER && c == '-')
		m->state = CLOSE_DASH;
	else if ((m->state == AFTER_DELIMITER || m->state == PADDING) && (blank || c == '\r'))
		m->state = blank ? PADDING : PADDING_LF;
	else if (m->state == PADDING_LF && c == '\n')
		m->state = HEADERS;
	else if (m->state == CLOSE_DASH && c == '-')
		m->state = CLOSE_PADDING;
	else if (m->state == CLOSE_PADDING && (blank || c == '\r'))
		m->state = blank ? CLOSE_PADDING : CLOSE_LF;
	else if (m->state == CLOSE_LF && c == '\n')
		m->state = EPILOGUE;
	else
		return err_set(e, -EINVAL, "a multipart boundary is followed by something else");
	return 0;
}

/* All headers of a part are in the buffer. */
static int begin_part(struct multipart *m, struct err *e)
{
	struct multipart_part part = {0};
	int r;

	r = multipart_header_parse(m->headers.mem + m->headers.start, m->headers.len, &part, e);
	if (r < 0)
		return r;
	m->state = DATA;
	/* A part without any body: the empty line's CRLF already belongs to the delimiter. */
	m->matched = m->borrowed = 2;
	return m->events->part(m->arg, &part);
}

static int scan_headers(struct multipart *m, struct view *in, struct err *e)
{
	size_t n = MIN(view_find(*in, '\n') + 1, in->len);
	struct view line;

	if (buf_append(&m->headers, in->p, n) < 0)
		return err_set(e, -E2BIG, "the headers of a part are longer than %d bytes",
			       HEADERS_MAX);
	*in = view_skip(*in, n);
	line = view_skip(buf_view(&m->headers), m->line_start);
	if (!view_ends(line, VIEW("\n")))
		return 0;
	if (!view_ends(line, VIEW("\r\n")))
		return err_set(e, -EINVAL, "a part's header line does not end in CRLF");
	m->line_start = m->headers.len;
	return line.len == 2 ? begin_part(m, e) : 0;
}

static int scan(struct multipart *m, struct view *in, struct err *e)
{
	switch (m->state) {
	case PREAMBLE:
	case DATA:
		return scan_body(m, in);
	case HEADERS:
		return scan_headers(m, in, e);
	case EPILOGUE:
		*in = VIEW_NONE;
		return 0;
	case FAILED:
		return err_set(e, -EINVAL, "the multipart body was refused before");
	default:
		return scan_delimiter_line(m, in, e);
	}
}

int multipart_feed(struct multipart *m, struct view bytes, struct err *e)
{
	while (bytes.len > 0) {
		int r = scan(m, &bytes, e);

		if (r < 0) {
			m->state = FAILED;
			return r;
		}
	}
	return 0;
}
