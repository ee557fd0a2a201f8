/*
 * codec/chunked.c - the chunked transfer coding, decoded incrementally.
 *
 * Framing bytes are checked one by one against the grammar of RFC 9112, 7.1; chunk data passes
 * through as views of the input.  Extensions and trailers are checked, bounded and dropped.
 */
#include "codec/chunked.h"

#include <errno.h>

#include "base/err.h"
#include "base/hex.h"
#include "codec/http_char.h"

/* Bytes of extensions per chunk, and of trailers per body. */
#define EXTRA_MAX 16384

enum state {
	SIZE,	     /* hex digits */
	AFTER_VALUE, /* white space behind a size or an extension's value; ';' must follow */
	NAME_START,  /* behind ';' */
	NAME,
	AFTER_NAME,
	VALUE_START, /* behind '=' */
	VALUE,
	QUOTED,
	QUOTED_PAIR, /* behind a backslash */
	QUOTED_END,
	SIZE_LF, /* behind the CR of a size line */
	DATA,
	DATA_CR,
	DATA_LF,
	TRAILER_START,
	TRAILER_NAME,
	TRAILER_VALUE,
	TRAILER_LF,
	END_LF, /* behind the CR of the last line */
	END,
	BAD,
};

void chunked_init(struct chunked *c)
{
	*c = (struct chunked){.state = SIZE};
}

static bool is_blank(char ch)
{
	return ch == ' ' || ch == '\t';
}

/* 16 digits fill 64 bits; the top bit stays free, so that lengths fit an off_t. */
static enum state size_digit(struct chunked *c, int digit)
{
	if (++c->digits > 16)
		return BAD;
	c->left = c->left << 4 | (unsigned)digit;
	return c->left > INT64_MAX ? BAD : SIZE;
}

/* What may follow a complete size, name or value. */
static enum state extension_or_end(char ch)
{
	switch (ch) {
	case ';':
		return NAME_START;
	case '\r':
		return SIZE_LF;
	case ' ':
	case '\t':
		return AFTER_VALUE;
	default:
		return BAD;
	}
}

static enum state size_step(struct chunked *c, char ch)
{
	int digit = hex_digit(ch);

	if (digit >= 0)
		return size_digit(c, digit);
	return c->digits > 0 ? extension_or_end(ch) : BAD;
}

/* chunk-ext = *( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] ) */
static enum state extension_step(enum state s, char ch)
{
	bool token = http_char_is(ch, HTTP_TCHAR);

	switch (s) {
	case AFTER_VALUE:
		return ch == '\r' ? BAD : extension_or_end(ch);
	case NAME_START:
		return is_blank(ch) ? NAME_START : token ? NAME : BAD;
	case NAME:
		if (token)
			return NAME;
		if (ch == '=')
			return VALUE_START;
		return is_blank(ch) ? AFTER_NAME : extension_or_end(ch);
	case AFTER_NAME:
		if (is_blank(ch))
			return AFTER_NAME;
		return ch == '=' ? VALUE_START : ch == ';' ? NAME_START : BAD;
	case VALUE_START:
		if (is_blank(ch))
			return VALUE_START;
		return ch == '"' ? QUOTED : token ? VALUE : BAD;
	case VALUE:
		return token ? VALUE : extension_or_end(ch);
	case QUOTED:
		if (ch == '"')
			return QUOTED_END;
		return ch == '\\' ? QUOTED_PAIR : http_char_is(ch, HTTP_FIELD) ? QUOTED : BAD;
	case QUOTED_PAIR:
		return http_char_is(ch, HTTP_FIELD) ? QUOTED : BAD;
	case QUOTED_END:
		return extension_or_end(ch);
	default:
		return BAD;
	}
}

static enum state trailer_step(enum state s, char ch)
{
	switch (s) {
	case TRAILER_START:
		return ch == '\r' ? END_LF : http_char_is(ch, HTTP_TCHAR) ? TRAILER_NAME : BAD;
	case TRAILER_NAME:
		return ch == ':'		      ? TRAILER_VALUE
		       : http_char_is(ch, HTTP_TCHAR) ? TRAILER_NAME
						      : BAD;
	case TRAILER_VALUE:
		return ch == '\r' ? TRAILER_LF : http_char_is(ch, HTTP_FIELD) ? TRAILER_VALUE : BAD;
	case TRAILER_LF:
		return ch == '\n' ? TRAILER_START : BAD;
	case END_LF:
		return ch == '\n' ? END : BAD;
	default:
		return BAD;
	}
}

static enum state size_line_done(struct chunked *c)
{
	c->digits = 0;
	c->extra = 0;
	return c->left > 0 ? DATA : TRAILER_START;
}

/* Any state but DATA and END takes one byte. */
static enum state step(struct chunked *c, char ch)
{
	enum state s = (enum state)c->state;

	switch (s) {
	case SIZE:
		return size_step(c, ch);
	case SIZE_LF:
		return ch == '\n' ? size_line_done(c) : BAD;
	case DATA_CR:
		return ch == '\r' ? DATA_LF : BAD;
	case DATA_LF:
		return ch == '\n' ? SIZE : BAD;
	case TRAILER_START:
	case TRAILER_NAME:
	case TRAILER_VALUE:
	case TRAILER_LF:
	case END_LF:
		return ++c->extra > EXTRA_MAX ? BAD : trailer_step(s, ch);
	default:
		return ++c->extra > EXTRA_MAX ? BAD : extension_step(s, ch);
	}
}

/* A sentence for the state in which a byte was refused. */
static const char *complaint(const struct chunked *c, int before)
{
	if (c->extra > EXTRA_MAX)
		return "chunk extensions or trailers are too long";
	if (before == SIZE)
		return "a chunk size is malformed or too large";
	if (before < DATA)
		return "a chunk size line is malformed";
	if (before < TRAILER_START)
		return "a chunk is not followed by CRLF";
	return "a trailer is malformed";
}

static enum chunked_result take_data(struct chunked *c, struct view *in, struct view *ret_data)
{
	size_t n = c->left < in->len ? (size_t)c->left : in->len;

	*ret_data = view_first(*in, n);
	*in = view_skip(*in, n);
	c->left -= n;
	if (c->left == 0)
		c->state = DATA_CR;
	return CHUNKED_DATA;
}

int chunked_next(struct chunked *c, struct view *in, struct view *ret_data, struct err *e)
{
	while (in->len > 0 && c->state < END) {
		int before = c->state;

		if (before == DATA)
			return take_data(c, in, ret_data);
		c->state = step(c, in->p[0]);
		if (c->state == BAD)
			return err_set(e, -EINVAL, "%s", complaint(c, before));
		*in = view_skip(*in, 1);
	}
	if (c->state == BAD)
		return err_set(e, -EINVAL, "the chunked body was malformed before");
	return c->state == END ? CHUNKED_END : CHUNKED_MORE;
}
