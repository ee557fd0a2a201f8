/*
 * policy/route.c - routes are split from the right: ids may look like anything.
 */
#include "policy/route.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/num.h"
#include "codec/sha256.h"

#define DIGITS "0123456789abcdefghijklmnopqrstuvwxyz"

void route_b36_format(uint64_t n, char ret[ROUTE_B36_MAX])
{
	char reversed[ROUTE_B36_MAX];
	size_t len = 0;

	do {
		reversed[len++] = DIGITS[n % 36];
		n /= 36;
	} while (n);
	for (size_t i = 0; i < len; i++)
		ret[i] = reversed[len - 1 - i];
	ret[len] = '\0';
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'z' ? c - 'a' + 10 : -1;
}

bool route_b36_parse(struct view text, uint64_t *ret)
{
	uint64_t n = 0;

	if (text.len == 0 || text.len >= ROUTE_B36_MAX || (text.len > 1 && text.p[0] == '0'))
		return false;
	for (size_t i = 0; i < text.len; i++) {
		int d = digit(text.p[i]);

		if (d < 0 || __builtin_mul_overflow(n, UINT64_C(36), &n) ||
		    __builtin_add_overflow(n, (uint64_t)d, &n))
			return false;
	}
	*ret = n;
	return true;
}

/* ---- parsing ---- */

static bool is_id(struct view v)
{
	for (size_t i = 0; i < v.len; i++) {
		char c = v.p[i];

		if (digit(c) < 0 && !(c >= 'A' && c <= 'Z') && c != '-' && c != '_')
			return false;
	}
	return v.len > 0 && v.len <= ROUTE_ID_MAX;
}

static bool read_port(struct view text, uint16_t *ret)
{
	uint32_t n;

	if (text.len == 0 || text.p[0] == '0' || !num_parse_u32(text, &n) || n > 65535)
		return false;
	*ret = (uint16_t)n;
	return true;
}

static bool is_signature(struct view text)
{
	if (text.len != ROUTE_SIGNATURE)
		return false;
	for (size_t i = 0; i < ROUTE_SIGNATURE - 1; i++)
		if (digit(text.p[i]) < 0 || digit(text.p[i]) > 15)
			return false;
	return digit(text.p[ROUTE_SIGNATURE - 1]) >= 0;
}

/* Takes what follows the last '-'; false when there is none. */
static bool take_last(struct view *rest, struct view *ret)
{
	size_t at = rest->len;

	while (at > 0 && rest->p[at - 1] != '-')
		at--;
	if (at == 0)
		return false;
	*ret = view_skip(*rest, at);
	*rest = view_first(*rest, at - 1);
	return true;
}

static bool parse_signed(struct view text, struct route_to *ret)
{
	struct route_to r = {.id = text, .is_signed = true};
	struct view port;
	uint64_t when;

	if (!take_last(&r.id, &r.signature) || !is_signature(r.signature) ||
	    !take_last(&r.id, &r.expires) || !route_b36_parse(r.expires, &when) ||
	    !take_last(&r.id, &port) || !read_port(port, &r.port) || !is_id(r.id))
		return false;
	*ret = r;
	return true;
}

bool route_parse_label(struct view text, struct route_to *ret)
{
	struct route_to r = {.id = text};
	struct view port;

	if (parse_signed(text, ret))
		return true;
	if (!take_last(&r.id, &port) || !read_port(port, &r.port) || !is_id(r.id))
		return false;
	*ret = r;
	return true;
}

/* Takes "/segment" off the path, which then begins with '/', '?' or nothing. */
static bool take_segment(struct view *path, struct view *ret)
{
	size_t end = 1;

	if (path->len == 0 || path->p[0] != '/')
		return false;
	while (end < path->len && path->p[end] != '/' && path->p[end] != '?')
		end++;
	*ret = view_mem(path->p + 1, end - 1);
	*path = view_skip(*path, end);
	return true;
}

static void take_signature(struct view *path, struct route_to *r)
{
	struct view rest = *path, expires, signature;
	uint64_t when;

	if (!take_segment(&rest, &expires) || !route_b36_parse(expires, &when) ||
	    !take_segment(&rest, &signature) || !is_signature(signature))
		return;
	r->is_signed = true;
	r->expires = expires;
	r->signature = signature;
	*path = rest;
}

bool route_parse_path(struct view target, bool may_be_signed, struct route_to *ret,
		      struct view *ret_rest)
{
	struct route_to r = {0};
	struct view port;

	if (!take_segment(&target, &r.id) || !is_id(r.id) || !take_segment(&target, &port) ||
	    !read_port(port, &r.port))
		return false;
	if (may_be_signed)
		take_signature(&target, &r);
	*ret = r;
	*ret_rest = target.len ? target : VIEW("/");
	return true;
}

/* ---- signatures ---- */

static void add_with_length(struct sha256 *s, struct view v)
{
	unsigned char len[4] = {(unsigned char)(v.len >> 24), (unsigned char)(v.len >> 16),
				(unsigned char)(v.len >> 8), (unsigned char)v.len};

	sha256_add(s, view_mem(len, sizeof(len)));
	sha256_add(s, v);
}

static void sign(const struct route_key *key, struct view id, uint16_t port, struct view expires,
		 char ret[ROUTE_SIGNATURE + 1])
{
	char text[ROUTE_ID_MAX + 64];
	unsigned char sum[SHA256_BYTES];
	struct sha256 s;
	int n = snprintf(text, sizeof(text), "v1\nshort\n" VIEW_FMT "\n%u\n" VIEW_FMT "\n",
			 VIEW_ARG(view_first(id, ROUTE_ID_MAX)), port, VIEW_ARG(expires));

	sha256_init(&s);
	add_with_length(&s, view_mem(key->secret, key->len));
	add_with_length(&s, view_mem(text, (size_t)n));
	sha256_done(&s, sum);
	snprintf(ret, ROUTE_SIGNATURE + 1, "%02x%02x%02x%02x%c", sum[0], sum[1], sum[2], sum[3],
		 key->id);
}

void route_sign(const struct route_key *key, struct view id, uint16_t port, uint64_t expires,
		char ret[ROUTE_SIGNATURE + 1])
{
	char text[ROUTE_B36_MAX];

	route_b36_format(expires, text);
	sign(key, id, port, view_of(text), ret);
}

enum route_verdict route_verify(const struct route_key *keys, size_t keys_n,
				const struct route_to *r, uint64_t now_s)
{
	char expected[ROUTE_SIGNATURE + 1];
	uint64_t when;

	if (!r->is_signed || !route_b36_parse(r->expires, &when))
		return ROUTE_FORGED;
	for (size_t i = 0; i < keys_n; i++) {
		if (keys[i].id != r->signature.p[ROUTE_SIGNATURE - 1])
			continue;
		sign(&keys[i], r->id, r->port, r->expires, expected);
		if (!bytes_equal_secret(view_of(expected), r->signature))
			return ROUTE_FORGED;
		return now_s <= when ? ROUTE_VALID : ROUTE_EXPIRED;
	}
	return ROUTE_NO_KEY;
}
