/*
 * codec/image_ref.c - the grammar of references, one predicate per rule.
 */
#include "codec/image_ref.h"

#include <errno.h>

#include "base/err.h"
#include "base/hex.h"
#include "base/num.h"

#define ALGORITHM VIEW("sha256:")
#define HEX_LEN	  64

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_alnum(char c)
{
	return is_digit(c) || is_lower(c) || is_upper(c);
}

static bool all_lower_hex(struct view v)
{
	for (size_t i = 0; i < v.len; i++)
		if (!is_digit(v.p[i]) && !(v.p[i] >= 'a' && v.p[i] <= 'f'))
			return false;
	return true;
}

bool image_ref_digest_valid(struct view digest)
{
	return digest.len == IMAGE_REF_DIGEST_LEN && view_starts(digest, ALGORITHM) &&
	       all_lower_hex(view_skip(digest, ALGORITHM.len));
}

/* What may stand between two runs of letters and digits: ".", "_", "__" or any number of "-". */
static bool separator_valid(struct view v)
{
	if (view_is(v, ".") || view_is(v, "_") || view_is(v, "__"))
		return true;
	for (size_t i = 0; i < v.len; i++)
		if (v.p[i] != '-')
			return false;
	return v.len > 0;
}

static bool component_valid(struct view v)
{
	size_t i = 0;

	for (;;) {
		size_t run = i, gap;

		while (i < v.len && (is_lower(v.p[i]) || is_digit(v.p[i])))
			i++;
		if (i == run)
			return false;
		if (i == v.len)
			return true;
		for (gap = i; i < v.len && !is_lower(v.p[i]) && !is_digit(v.p[i]);)
			i++;
		if (!separator_valid(view_mem(v.p + gap, i - gap)))
			return false;
	}
}

bool image_ref_repository_valid(struct view text)
{
	struct view part;

	if (text.len == 0 || text.len > IMAGE_REF_NAME_MAX || view_ends(text, VIEW("/")))
		return false;
	while (view_split(&text, '/', &part))
		if (!component_valid(part))
			return false;
	return true;
}

/* Letters, digits and hyphens, no hyphen at either end. */
static bool label_valid(struct view v)
{
	for (size_t i = 0; i < v.len; i++)
		if (!is_alnum(v.p[i]) && v.p[i] != '-')
			return false;
	return v.len > 0 && v.p[0] != '-' && v.p[v.len - 1] != '-';
}

/* Between brackets: hexadecimal digits, colons, and dots for the IPv4 part. */
static bool v6_valid(struct view v)
{
	bool colon = false;

	for (size_t i = 0; i < v.len; i++) {
		colon |= v.p[i] == ':';
		if (hex_digit(v.p[i]) < 0 && v.p[i] != ':' && v.p[i] != '.')
			return false;
	}
	return colon;
}

/* The host without its port and brackets; false when either is malformed. */
static bool split_host(struct view registry, struct view *ret_host, struct view *ret_port)
{
	size_t end;

	if (registry.len > 0 && registry.p[0] == '[') {
		end = view_find(registry, ']');
		if (end == registry.len)
			return false;
		*ret_host = view_mem(registry.p + 1, end - 1);
		end++;
	} else {
		end = view_find(registry, ':');
		*ret_host = view_first(registry, end);
	}
	*ret_port = view_skip(registry, end);
	if (ret_port->len == 0)
		return true;
	if (ret_port->p[0] != ':')
		return false;
	*ret_port = view_skip(*ret_port, 1);
	return ret_port->len > 0;
}

static bool registry_valid(struct view registry)
{
	struct view host, port, label;
	uint32_t n;

	if (!split_host(registry, &host, &port))
		return false;
	if (port.len > 0 && (port.len > 5 || !num_parse_u32(port, &n) || n == 0 || n > 65535))
		return false;
	if (registry.p[0] == '[')
		return v6_valid(host);
	if (host.len == 0 || view_ends(host, VIEW(".")))
		return false;
	while (view_split(&host, '.', &label))
		if (!label_valid(label))
			return false;
	return true;
}

bool image_ref_host_is_loopback(struct view registry)
{
	struct view host, port, part;
	uint32_t n;
	int parts = 0;

	if (!split_host(registry, &host, &port))
		return false;
	if (view_iis(host, "localhost") || view_is(host, "::1"))
		return true;
	if (!view_starts(host, VIEW("127.")) || view_ends(host, VIEW(".")))
		return false;
	for (; view_split(&host, '.', &part); parts++)
		if (part.len > 3 || !num_parse_u32(part, &n) || n > 255)
			return false;
	return parts == 4;
}

/* Is the part before the first slash a registry?  Docker's rule, word for word. */
static bool names_registry(struct view first)
{
	bool upper = false;

	for (size_t i = 0; i < first.len; i++)
		upper |= is_upper(first.p[i]);
	return view_has(first, '.') || view_has(first, ':') || view_is(first, "localhost") || upper;
}

static bool tag_valid(struct view tag)
{
	for (size_t i = 0; i < tag.len; i++)
		if (!is_alnum(tag.p[i]) && tag.p[i] != '_' &&
		    (i == 0 || (tag.p[i] != '.' && tag.p[i] != '-')))
			return false;
	return tag.len > 0 && tag.len <= IMAGE_REF_TAG_MAX;
}

static int bad(struct view text, const char *why, struct err *e)
{
	char shown[80];
	size_t n = 0;

	for (; n < text.len && n < sizeof(shown) - 1; n++)
		shown[n] = text.p[n] > 0x20 && text.p[n] < 0x7f ? text.p[n] : '?';
	shown[n] = '\0';
	return err_set(e, -EINVAL, "invalid image reference '%s': %s", shown, why);
}

static void copy(char *to, struct view v)
{
	memcpy(to, v.p, v.len);
	to[v.len] = '\0';
}

static int take_digest(struct view text, struct view *rest, struct image_ref *ref, struct err *e)
{
	size_t at = view_find(*rest, '@');
	struct view digest = view_skip(*rest, at + 1);

	if (at == rest->len)
		return 0;
	*rest = view_first(*rest, at);
	if (!view_starts(digest, ALGORITHM))
		return bad(text, "the digest must be sha256:<64 hexadecimal digits>", e);
	if (!image_ref_digest_valid(digest))
		return bad(text, "a sha256 digest has 64 lower-case hexadecimal digits", e);
	copy(ref->digest, digest);
	return 0;
}

/* The last colon begins a tag unless a slash follows: then it belongs to a registry's port. */
static int take_tag(struct view text, struct view *rest, struct image_ref *ref, struct err *e)
{
	size_t at = rest->len;
	struct view tag;

	while (at > 0 && rest->p[at - 1] != ':' && rest->p[at - 1] != '/')
		at--;
	if (at == 0 || rest->p[at - 1] == '/') {
		if (!ref->digest[0])
			copy(ref->tag, VIEW("latest"));
		return 0;
	}
	tag = view_skip(*rest, at);
	*rest = view_first(*rest, at - 1);
	if (!tag_valid(tag))
		return bad(text, "a tag is up to 128 letters, digits, '_', '.' and '-'", e);
	copy(ref->tag, tag);
	return 0;
}

static int take_name(struct view text, struct view name, struct image_ref *ref, struct err *e)
{
	size_t slash = view_find(name, '/');
	struct view registry = VIEW(IMAGE_REF_HUB), path = name, prefix = VIEW("");

	if (slash < name.len && names_registry(view_first(name, slash))) {
		registry = view_first(name, slash);
		path = view_skip(name, slash + 1);
	} else if (text.len == HEX_LEN && all_lower_hex(text)) {
		return bad(text, "64 hexadecimal digits are an id, not a name", e);
	}
	if (!registry_valid(registry))
		return bad(text, "the registry must be a host name or address, with a port or not",
			   e);
	if (view_is(registry, "index.docker.io"))
		registry = VIEW(IMAGE_REF_HUB);
	if (view_is(registry, IMAGE_REF_HUB) && !view_has(path, '/'))
		prefix = VIEW("library/");
	if (registry.len + 1 + prefix.len + path.len > IMAGE_REF_NAME_MAX)
		return bad(text, "the name is longer than 255 characters", e);
	if (!image_ref_repository_valid(path))
		return bad(text,
			   "a repository is lower-case letters and digits, with single '.', "
			   "'_' and '-' between them",
			   e);
	copy(ref->registry, registry);
	copy(ref->repository, prefix);
	copy(ref->repository + prefix.len, path);
	return 0;
}

int image_ref_parse(struct view text, struct image_ref *ret, struct err *e)
{
	struct image_ref ref = {0};
	struct view rest = text;
	int r;

	if (text.len == 0)
		return bad(text, "it is empty", e);
	if (text.len > IMAGE_REF_TEXT_MAX)
		return bad(text, "it is too long", e);
	r = take_digest(text, &rest, &ref, e);
	if (r == 0)
		r = take_tag(text, &rest, &ref, e);
	if (r == 0)
		r = take_name(text, rest, &ref, e);
	if (r == 0)
		*ret = ref;
	return r;
}

static char *append(char *at, const char *text)
{
	size_t n = strlen(text);

	memcpy(at, text, n + 1);
	return at + n;
}

/* A reference that was parsed fits. */
void image_ref_format(const struct image_ref *ref, char ret[IMAGE_REF_TEXT_MAX + 1])
{
	char *at = append(ret, ref->registry);

	at = append(at, "/");
	at = append(at, ref->repository);
	if (ref->tag[0])
		at = append(append(at, ":"), ref->tag);
	if (ref->digest[0])
		append(append(at, "@"), ref->digest);
}
