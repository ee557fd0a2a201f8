/*
 * codec/http1.c - HTTP/1.1 message heads, strictly as RFC 9112 writes them.
 *
 * Nothing is copied and nothing is repaired: what two parsers could read in two ways is refused,
 * so that a proxy behind or before us never sees another message than we do.
 */
#include "codec/http1.h"

#include <errno.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "codec/http_char.h"
#include "codec/url.h"

/* How much of a client's name or value an error sentence repeats. */
#define QUOTE_MAX 40

/* What the header loop has seen of the fields that decide the framing. */
struct framing {
	unsigned hosts, lengths;
	bool transfer_encoding; /* the field is there */
	bool unknown_coding;
	bool close, keep_alive, upgrade; /* named by Connection */
	bool has_upgrade;		 /* the field is there */
};

ssize_t http1_head_end(struct view in, size_t *scanned)
{
	size_t i;

	for (i = *scanned; i < in.len; i++) {
		if (http_char_is(in.p[i], HTTP_FIELD))
			continue;
		if (in.p[i] != '\r')
			return -EINVAL;
		if (i + 1 == in.len)
			break;
		if (in.p[i + 1] != '\n')
			return -EINVAL;
		if (i == 0 || in.p[i - 1] == '\n')
			return (ssize_t)i + 2;
		i++;
	}
	*scanned = i;
	return 0;
}

/* Cuts the next line, without its CRLF, off the front of *rest. */
static bool next_line(struct view *rest, struct view *ret)
{
	size_t lf = view_find(*rest, '\n');

	if (lf == rest->len || lf == 0 || rest->p[lf - 1] != '\r')
		return false;
	*ret = view_first(*rest, lf - 1);
	*rest = view_skip(*rest, lf + 1);
	return true;
}

/* "HTTP/1.1" -> 1. */
static int parse_version(struct view v, int *ret_minor, struct err *e)
{
	if (v.len != 8 || memcmp(v.p, "HTTP/", 5) != 0 || v.p[6] != '.' || v.p[5] < '0' ||
	    v.p[5] > '9' || v.p[7] < '0' || v.p[7] > '9')
		return err_set(e, -EINVAL, "the HTTP version is malformed");
	if (v.p[5] != '1' || v.p[7] > '1')
		return err_set(e, -EPROTONOSUPPORT, "HTTP version %c.%c is not supported", v.p[5],
			       v.p[7]);
	*ret_minor = v.p[7] - '0';
	return 0;
}

static int check_target(struct view method, struct view target, struct err *e)
{
	struct url_target parts;

	if (view_is(method, "CONNECT"))
		return err_set(e, -EINVAL, "CONNECT is not supported: this server is no tunnel");
	if (view_is(target, "*")) {
		if (view_is(method, "OPTIONS"))
			return 0;
		return err_set(e, -EINVAL, "the target '*' is for OPTIONS alone");
	}
	if (!url_target_parse(target, &parts))
		return err_set(e, -EINVAL, "the request target is malformed");
	return 0;
}

static int parse_request_line(struct view line, struct http1_head *h, struct err *e)
{
	size_t sp;
	int r;

	sp = view_find(line, ' ');
	if (sp == line.len)
		return err_set(e, -EINVAL, "the request line is not 'METHOD TARGET VERSION'");
	h->method = view_first(line, sp);
	line = view_skip(line, sp + 1);
	if (!http1_is_token(h->method))
		return err_set(e, -EINVAL, "the method is no token");

	sp = view_find(line, ' ');
	if (sp == line.len)
		return err_set(e, -EINVAL, "the request line is not 'METHOD TARGET VERSION'");
	h->target = view_first(line, sp);

	r = parse_version(view_skip(line, sp + 1), &h->minor, e);
	if (r < 0)
		return r;
	return check_target(h->method, h->target, e);
}

/* RFC 9112 wants a space even before an empty reason; many servers forget it. */
static int parse_status_line(struct view line, struct http1_head *h, struct err *e)
{
	struct view code;
	uint32_t status;
	int r;

	r = parse_version(view_first(line, 8), &h->minor, e);
	if (r < 0)
		return r;
	line = view_skip(line, 8);
	code = view_first(view_skip(line, 1), 3);
	if (line.len < 4 || line.p[0] != ' ' || !num_parse_u32(code, &status) || status < 100)
		return err_set(e, -EINVAL, "the status code is malformed");
	line = view_skip(line, 4);
	if (line.len > 0 && line.p[0] != ' ')
		return err_set(e, -EINVAL, "the status code is malformed");
	h->status = (int)status;
	h->reason = view_skip(line, 1);
	if (!http_char_all(h->reason, HTTP_FIELD))
		return err_set(e, -EINVAL, "the reason phrase holds a control character");
	return 0;
}

/* A coding is a token, maybe with parameters; "chunked" takes none and must come last, once. */
static int read_transfer_encoding(struct view value, struct http1_head *h, struct framing *f,
				  struct err *e)
{
	struct view item;

	f->transfer_encoding = true;
	/* Empty list elements are legal to read, but nobody honest sends them here. */
	if (value.len == 0 || view_ends(value, VIEW(",")))
		return err_set(e, -EINVAL, "Transfer-Encoding is malformed");
	while (view_split(&value, ',', &item)) {
		item = view_trim(item);
		if (h->chunked)
			return err_set(e, -EINVAL, "a transfer coding follows 'chunked'");
		if (view_iis(item, "chunked"))
			h->chunked = true;
		else if (http1_is_token(view_trim(view_first(item, view_find(item, ';')))))
			f->unknown_coding = true;
		else
			return err_set(e, -EINVAL, "Transfer-Encoding is malformed");
	}
	return 0;
}

static int read_content_length(struct view value, struct http1_head *h, struct framing *f,
			       struct err *e)
{
	if (f->lengths++ > 0)
		return err_set(e, -EINVAL, "Content-Length is there twice");
	if (!num_parse_u64(value, &h->length) || h->length > INT64_MAX)
		return err_set(e, -EINVAL, "Content-Length is malformed");
	h->has_length = true;
	return 0;
}

static int read_host(struct view value, struct framing *f, struct err *e)
{
	if (f->hosts++ > 0)
		return err_set(e, -EINVAL, "Host is there twice");
	if (!http_char_all(value, HTTP_AUTHORITY))
		return err_set(e, -EINVAL, "Host is malformed");
	return 0;
}

static void read_connection(struct view value, struct framing *f)
{
	f->close |= http1_list_has(value, "close");
	f->keep_alive |= http1_list_has(value, "keep-alive");
	f->upgrade |= http1_list_has(value, "upgrade");
}

/* Looks at the few fields that mean something to the connection; lengths sort most others out. */
static int read_field(const struct http1_header *field, struct http1_head *h, struct framing *f,
		      struct err *e)
{
	struct view name = field->name, value = field->value;

	switch (name.len) {
	case 4:
		return view_iis(name, "host") ? read_host(value, f, e) : 0;
	case 6:
		if (view_iis(name, "expect"))
			h->expect_continue |= view_iis(value, "100-continue");
		return 0;
	case 7:
		if (view_iis(name, "upgrade"))
			f->has_upgrade = true;
		return 0;
	case 10:
		if (view_iis(name, "connection"))
			read_connection(value, f);
		return 0;
	case 14:
		return view_iis(name, "content-length") ? read_content_length(value, h, f, e) : 0;
	case 17:
		if (view_iis(name, "transfer-encoding"))
			return read_transfer_encoding(value, h, f, e);
		return 0;
	default:
		return 0;
	}
}

static int parse_field_line(struct view line, struct http1_header *ret, struct err *e)
{
	size_t colon;

	if (line.p[0] == ' ' || line.p[0] == '\t')
		return err_set(e, -EINVAL, "a header line begins with white space (folding)");
	colon = view_find(line, ':');
	if (colon == line.len)
		return err_set(e, -EINVAL, "a header line has no colon");
	ret->name = view_first(line, colon);
	if (!http1_is_token(ret->name))
		return err_set(e, -EINVAL, "a header name is no token");
	ret->value = view_trim(view_skip(line, colon + 1));
	if (!http_char_all(ret->value, HTTP_FIELD))
		return err_set(e, -EINVAL, "header '" VIEW_FMT "' holds a control character",
			       VIEW_ARG(view_first(ret->name, QUOTE_MAX)));
	return 0;
}

/* The header lines and the empty line, which must end the text. */
static int parse_fields(struct view rest, struct http1_head *h, struct framing *f, struct err *e)
{
	struct view line;
	int r;

	for (;;) {
		if (!next_line(&rest, &line))
			return err_set(e, -EINVAL, "a header line does not end in CRLF");
		if (line.len == 0)
			break;
		if (h->headers_n == HTTP1_MAX_HEADERS)
			return err_set(e, -E2BIG, "more than %d headers", HTTP1_MAX_HEADERS);
		r = parse_field_line(line, &h->headers[h->headers_n], e);
		if (r < 0)
			return r;
		r = read_field(&h->headers[h->headers_n++], h, f, e);
		if (r < 0)
			return r;
	}
	if (rest.len > 0)
		return err_set(e, -EINVAL, "the head goes on behind its empty line");
	return 0;
}

/* RFC 9112, 6.1-6.3: what the fields mean together. */
static int decide_framing(struct http1_head *h, const struct framing *f, struct err *e)
{
	if (f->transfer_encoding && h->has_length)
		return err_set(e, -EINVAL, "both Content-Length and Transfer-Encoding are there");
	if (f->transfer_encoding && h->minor == 0)
		return err_set(e, -EINVAL, "HTTP/1.0 knows no Transfer-Encoding");
	if (f->unknown_coding)
		return err_set(e, -ENOTSUP, "the transfer coding is not supported, only 'chunked'");

	h->keep_alive = !f->close && (h->minor == 1 || f->keep_alive);
	h->upgrade = h->minor == 1 && f->upgrade && f->has_upgrade;
	h->expect_continue &= h->minor == 1;
	return 0;
}

/* Everything but the header array, which is written before it is read. */
static void clear_head(struct http1_head *h)
{
	h->method = h->target = h->reason = VIEW_NONE;
	h->status = h->minor = 0;
	h->headers_n = 0;
	h->chunked = h->has_length = h->keep_alive = h->upgrade = h->expect_continue = false;
	h->length = 0;
}

int http1_parse_request(struct view text, struct http1_head *ret, struct err *e)
{
	struct framing f = {0};
	struct view line;
	int r;

	clear_head(ret);
	if (!next_line(&text, &line))
		return err_set(e, -EINVAL, "the request line does not end in CRLF");
	r = parse_request_line(line, ret, e);
	if (r < 0)
		return r;
	r = parse_fields(text, ret, &f, e);
	if (r < 0)
		return r;
	if (f.hosts == 0 && ret->minor == 1)
		return err_set(e, -EINVAL, "Host is missing");
	return decide_framing(ret, &f, e);
}

int http1_parse_response(struct view text, struct http1_head *ret, struct err *e)
{
	struct framing f = {0};
	struct view line;
	int r;

	clear_head(ret);
	if (!next_line(&text, &line))
		return err_set(e, -EINVAL, "the status line does not end in CRLF");
	r = parse_status_line(line, ret, e);
	if (r < 0)
		return r;
	r = parse_fields(text, ret, &f, e);
	if (r < 0)
		return r;
	return decide_framing(ret, &f, e);
}

bool http1_header(const struct http1_head *h, const char *name, struct view *ret)
{
	struct view wanted = view_of(name);

	for (size_t i = 0; i < h->headers_n; i++)
		if (view_ieq(h->headers[i].name, wanted)) {
			*ret = h->headers[i].value;
			return true;
		}
	return false;
}

bool http1_list_has(struct view list, const char *token)
{
	struct view item;

	while (view_split(&list, ',', &item))
		if (view_iis(view_trim(item), token))
			return true;
	return false;
}

bool http1_is_token(struct view v)
{
	return v.len > 0 && http_char_all(v, HTTP_TCHAR);
}

bool http1_is_field_value(struct view v)
{
	return http_char_all(v, HTTP_FIELD) && view_trim(v).len == v.len;
}

const char *http1_reason(int status)
{
	static const struct {
		int status;
		const char *reason;
	} reasons[] = {
		{100, "Continue"},
		{101, "Switching Protocols"},
		{200, "OK"},
		{201, "Created"},
		{202, "Accepted"},
		{203, "Non-Authoritative Information"},
		{204, "No Content"},
		{205, "Reset Content"},
		{206, "Partial Content"},
		{300, "Multiple Choices"},
		{301, "Moved Permanently"},
		{302, "Found"},
		{303, "See Other"},
		{304, "Not Modified"},
		{307, "Temporary Redirect"},
		{308, "Permanent Redirect"},
		{400, "Bad Request"},
		{401, "Unauthorized"},
		{402, "Payment Required"},
		{403, "Forbidden"},
		{404, "Not Found"},
		{405, "Method Not Allowed"},
		{406, "Not Acceptable"},
		{407, "Proxy Authentication Required"},
		{408, "Request Timeout"},
		{409, "Conflict"},
		{410, "Gone"},
		{411, "Length Required"},
		{412, "Precondition Failed"},
		{413, "Content Too Large"},
		{414, "URI Too Long"},
		{415, "Unsupported Media Type"},
		{416, "Range Not Satisfiable"},
		{417, "Expectation Failed"},
		{421, "Misdirected Request"},
		{422, "Unprocessable Content"},
		{426, "Upgrade Required"},
		{428, "Precondition Required"},
		{429, "Too Many Requests"},
		{431, "Request Header Fields Too Large"},
		{500, "Internal Server Error"},
		{501, "Not Implemented"},
		{502, "Bad Gateway"},
		{503, "Service Unavailable"},
		{504, "Gateway Timeout"},
		{505, "HTTP Version Not Supported"},
		{507, "Insufficient Storage"},
	};

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Unknown";
}

int http1_append_header(struct buf *out, const struct http1_header *h)
{
	size_t len = h->name.len + h->value.len + 4;
	char *to = buf_reserve(out, len);

	if (!to)
		return -E2BIG;
	to = (char *)mempcpy(to, h->name.p, h->name.len);
	*to++ = ':';
	*to++ = ' ';
	if (h->value.len)
		to = (char *)mempcpy(to, h->value.p, h->value.len);
	*to++ = '\r';
	*to = '\n';
	buf_commit(out, len);
	return 0;
}

bool http1_hop_by_hop(struct view name)
{
	static const char *const names[] = {
		"connection",
		"keep-alive",
		"proxy-connection",
		"te",
		"trailer",
		"transfer-encoding",
		"upgrade",
		"proxy-authenticate",
		"proxy-authorization",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (view_iis(name, names[i]))
			return true;
	return false;
}
