/*
 * policy/preview.c - addresses of gateways, routes of requests, and who may use them.
 */
#include "policy/preview.h"

#include <errno.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/num.h"
#include "codec/base64.h"

#define ADDRESS_MAX 512

/* ---- the gateway's address ---- */

static const char *const mode_names[PREVIEW_MODES_] = {
	[PREVIEW_WILDCARD] = "wildcard",
	[PREVIEW_HEADER] = "header",
	[PREVIEW_URI] = "uri",
};

const char *preview_mode_name(enum preview_mode mode)
{
	return mode_names[mode];
}

bool preview_mode_parse(struct view text, enum preview_mode *ret)
{
	for (int i = 0; i < PREVIEW_MODES_; i++) {
		if (view_is(text, mode_names[i])) {
			*ret = (enum preview_mode)i;
			return true;
		}
	}
	return false;
}

static struct view without_port(struct view host)
{
	struct view port;
	size_t at = host.len;

	while (at > 0 && host.p[at - 1] >= '0' && host.p[at - 1] <= '9')
		at--;
	port = view_skip(host, at);
	return at > 0 && port.len > 0 && host.p[at - 1] == ':' ? view_first(host, at - 1) : host;
}

static bool is_label(struct view v)
{
	for (size_t i = 0; i < v.len; i++) {
		char c = v.p[i];

		if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
		    c != '-' && c != '_')
			return false;
	}
	return v.len > 0 && v.len <= 63 && v.p[0] != '-' && v.p[v.len - 1] != '-';
}

/* A name or an IPv4 address, and perhaps a port. */
static bool is_host(struct view text)
{
	struct view host = without_port(text), label;
	uint32_t port = 1;

	if (host.len < text.len && !num_parse_u32(view_skip(text, host.len + 1), &port))
		return false;
	if (port < 1 || port > 65535 || host.len == 0 || host.p[host.len - 1] == '.')
		return false;
	while (view_split(&host, '.', &label))
		if (!is_label(label))
			return false;
	return true;
}

static bool is_printable(struct view text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.p[i] <= ' ' || text.p[i] >= 0x7f || text.p[i] == '"')
			return false;
	return true;
}

int preview_address_check(enum preview_mode mode, struct view address, struct err *e)
{
	if (address.len == 0 || address.len > ADDRESS_MAX || !is_printable(address))
		return err_set(e, -EINVAL, "must be a host, without spaces");
	if (view_find_view(address, VIEW("://")) < address.len)
		return err_set(e, -EINVAL, "must not have a scheme: clients choose http or https");
	if (mode == PREVIEW_WILDCARD) {
		if (view_starts(address, VIEW("*.")) && is_host(view_skip(address, 2)))
			return 0;
		return err_set(e, -EINVAL, "must be like *.example.com for the mode wildcard");
	}
	if (view_has(address, '*'))
		return err_set(e, -EINVAL, "must not have a '*' for the mode %s", mode_names[mode]);
	if (mode == PREVIEW_HEADER && !is_host(address))
		return err_set(e, -EINVAL,
			       "must be a host name or IPv4 address, with a port if "
			       "need be, for the mode header");
	return 0;
}

char *preview_label(struct arena *a, const struct route_to *to)
{
	if (!to->is_signed)
		return arena_printf(a, VIEW_FMT "-%u", VIEW_ARG(to->id), to->port);
	return arena_printf(a, VIEW_FMT "-%u-" VIEW_FMT "-" VIEW_FMT, VIEW_ARG(to->id), to->port,
			    VIEW_ARG(to->expires), VIEW_ARG(to->signature));
}

char *preview_endpoint(struct arena *a, enum preview_mode mode, struct view address,
		       const struct route_to *to)
{
	char *label;

	switch (mode) {
	case PREVIEW_WILDCARD:
		label = preview_label(a, to);
		return label ? arena_printf(a, "%s." VIEW_FMT, label,
					    VIEW_ARG(view_skip(address, 2)))
			     : NULL;
	case PREVIEW_HEADER:
		return arena_str(a, address);
	default:
		while (view_ends(address, VIEW("/")))
			address = view_first(address, address.len - 1);
		return arena_printf(a, VIEW_FMT "/" VIEW_FMT "/%u%s" VIEW_FMT "%s" VIEW_FMT,
				    VIEW_ARG(address), VIEW_ARG(to->id), to->port,
				    to->is_signed ? "/" : "", VIEW_ARG(to->expires),
				    to->is_signed ? "/" : "", VIEW_ARG(to->signature));
	}
}

int preview_key_parse(struct view id, struct view base64, struct route_key *ret, struct err *e)
{
	char padded[BASE64_LEN(ROUTE_SECRET_MAX) + 1];
	size_t len;
	ssize_t n;

	if (id.len != 1 ||
	    !((id.p[0] >= '0' && id.p[0] <= '9') || (id.p[0] >= 'a' && id.p[0] <= 'z')))
		return err_set(e, -EINVAL, "the name of a key is one of 0-9 and a-z");
	while (view_ends(base64, VIEW("=")))
		base64 = view_first(base64, base64.len - 1);
	len = (base64.len + 3) / 4 * 4;
	if (len >= sizeof(padded))
		return err_set(e, -E2BIG, "key '%c' is longer than %d bytes", id.p[0],
			       ROUTE_SECRET_MAX);
	memset(padded, '=', len);
	if (base64.len)
		memcpy(padded, base64.p, base64.len);
	n = base64_parse(view_mem(padded, len), ret->secret, sizeof(ret->secret));
	explicit_bzero(padded, sizeof(padded));
	if (n <= 0)
		return err_set(e, -EINVAL, "key '%c' must be base64 of at least one byte", id.p[0]);
	ret->id = id.p[0];
	ret->len = (size_t)n;
	return 0;
}

/* ---- which sandbox ---- */

static struct view first_label(struct view host)
{
	host = without_port(host);
	return view_first(host, view_find(host, '.'));
}

static bool find_by_path(const struct preview_request *r, struct preview *ret)
{
	*ret = (struct preview){.whole = r->target};
	if (!route_parse_path(r->target, /* may_be_signed= */ false, &ret->to, &ret->target))
		return false;
	ret->prefix = view_first(r->target, view_find(r->target, '?'));
	ret->prefix = view_first(ret->prefix, ret->to.id.len + 2);
	while (ret->prefix.len < r->target.len && r->target.p[ret->prefix.len] != '/' &&
	       r->target.p[ret->prefix.len] != '?')
		ret->prefix.len++;
	return true;
}

bool preview_find(enum preview_mode mode, const struct preview_request *r, struct preview *ret)
{
	if (mode == PREVIEW_URI)
		return find_by_path(r, ret);
	*ret = (struct preview){.target = r->target};
	return route_parse_label(first_label(view_trim(r->to.p ? r->to : r->host)), &ret->to);
}

void preview_take_signature(struct preview *p, bool secured, const struct route_key *keys,
			    size_t keys_n)
{
	struct route_to to;
	struct view rest;

	if (!p->whole.p || !route_parse_path(p->whole, /* may_be_signed= */ true, &to, &rest) ||
	    !to.is_signed)
		return;
	if (!secured && route_verify(keys, keys_n, &to, /* now_s= */ 0) != ROUTE_VALID)
		return;
	p->to = to;
	p->target = rest;
	p->prefix.len += to.expires.len + to.signature.len + 2;
}

bool preview_is_below(struct view host, struct view address)
{
	struct view domain = without_port(view_skip(address, 1)); /* ".example.com" */

	host = without_port(host);
	return domain.len > 1 && host.len > domain.len &&
	       view_ieq(view_skip(host, host.len - domain.len), domain);
}

/* ---- whether it may ---- */

enum preview_access preview_check(struct view token, struct view secure, const struct route_to *to,
				  const struct route_key *keys, size_t keys_n, uint64_t now_s,
				  const char **ret_why)
{
	if (token.len == 0)
		return PREVIEW_ALLOWED;
	if (secure.p) {
		*ret_why = "the secure access token is not the right one";
		return bytes_equal_secret(view_trim(secure), token) ? PREVIEW_ALLOWED
								    : PREVIEW_DENIED;
	}
	*ret_why = "this sandbox wants the header " PREVIEW_SECURE_HEADER " or a signed route";
	if (!to->is_signed)
		return PREVIEW_DENIED;
	*ret_why = "this gateway has no keys to verify signed routes with";
	if (keys_n == 0)
		return PREVIEW_NO_KEYS;
	switch (route_verify(keys, keys_n, to, now_s)) {
	case ROUTE_VALID:
		return PREVIEW_ALLOWED;
	case ROUTE_EXPIRED:
		*ret_why = "the signed route has expired";
		return PREVIEW_DENIED;
	default:
		*ret_why = "the route's signature is not valid";
		return PREVIEW_DENIED;
	}
}
