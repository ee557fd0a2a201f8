/*
 * policy/vault_binding.c - a binding as a client writes it: checked and brought into one form.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "codec/http1.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "policy/vault_int.h"

/* ---- small readers ---- */

int vault_only_fields(const struct json *v, const char *what, const char *const *names,
		      struct err *e)
{
	const struct json *member;
	struct view key;
	void *it = NULL;

	if (v && json_kind(v) != JSON_OBJECT)
		return err_set(e, -EINVAL, "%s must be an object, not %s", what,
			       json_kind_name(json_kind(v)));
	while (v && json_next(v, &it, &key, &member)) {
		const char *const *name = names;

		while (*name && !view_is(key, *name))
			name++;
		if (!*name)
			return err_set(e, -EINVAL, "%s: unknown field \"" VIEW_FMT "\"", what,
				       VIEW_ARG(view_first(key, 64)));
	}
	return 0;
}

struct view vault_trim(struct view v)
{
	while (v.len && strchr(" \t\r\n\f\v", v.p[0]))
		v = view_skip(v, 1);
	while (v.len && strchr(" \t\r\n\f\v", v.p[v.len - 1]))
		v = view_first(v, v.len - 1);
	return v;
}

int vault_read_name(const struct json *v, const char *what, char **ret, struct err *e)
{
	struct view name = VIEW_NONE;

	if (json_field_string(v, "name", &name, e) < 0)
		return err_ctx(e, "%s", what);
	name = vault_trim(name);
	if (name.len == 0)
		return err_set(e, -EINVAL, "%s name cannot be blank", what);
	if (name.len > VAULT_NAME_MAX)
		return err_set(e, -EINVAL, "%s name is longer than %d bytes", what, VAULT_NAME_MAX);
	*ret = mem_strndup(name.p, name.len);
	return 0;
}

static bool strv_has(const struct strv *s, const char *text)
{
	for (size_t i = 0; i < s->len; i++)
		if (strcmp(s->v[i], text) == 0)
			return true;
	return false;
}

/* Turns one element into what is kept, or says why not. */
typedef int normal_fn(struct view text, char **ret, struct err *e);

static int read_list(const struct json *match, const char *key, normal_fn *normal, struct strv *ret,
		     struct err *e)
{
	const struct json *list = NULL;

	if (json_field_array(match, key, &list, e) < 0)
		return e->code;
	if (json_len(list) > VAULT_LIST_MAX)
		return err_set(e, -EINVAL, "match.%s has more than %d elements", key,
			       VAULT_LIST_MAX);
	for (size_t i = 0; i < json_len(list); i++) {
		osb_cleanup(mem_freep) char *text = NULL;
		struct view v;

		if (!json_str(json_at(list, i), &v) || memchr(v.p, '\0', v.len) || v.len > 1024)
			return err_set(e, -EINVAL, "match.%s holds something that is no text", key);
		if (normal(vault_trim(v), &text, e) < 0)
			return e->code;
		if (!strv_has(ret, text))
			strv_take(ret, take_ptr(text));
	}
	return 0;
}

/* ---- match ---- */

static char *changed_case(struct view v, int (*change)(int))
{
	char *text = mem_strndup(v.p, v.len);

	for (char *p = text; *p; p++)
		if ((unsigned char)*p < 0x80)
			*p = (char)change((unsigned char)*p);
	return text;
}

int vault_lower(int c)
{
	return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

int vault_upper(int c)
{
	return c >= 'a' && c <= 'z' ? c - ('a' - 'A') : c;
}

static bool is_label(struct view v)
{
	for (size_t i = 0; i < v.len; i++) {
		char c = v.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
		      (c == '-' && i > 0 && i + 1 < v.len)))
			return false;
	}
	return v.len > 0 && v.len <= 63;
}

static bool is_address(struct view v)
{
	unsigned char bytes[16];
	char copy[64];

	if (v.len >= sizeof(copy))
		return false;
	memcpy(copy, v.p, v.len);
	copy[v.len] = '\0';
	return inet_pton(AF_INET, copy, bytes) == 1 || inet_pton(AF_INET6, copy, bytes) == 1;
}

static bool is_fqdn(struct view v)
{
	struct view rest = v, label;

	if (v.len > 253 || !view_has(v, '.') || view_ends(v, VIEW(".")) || is_address(v))
		return false;
	while (view_split(&rest, '.', &label))
		if (!is_label(label))
			return false;
	return true;
}

static int normal_host(struct view text, char **ret, struct err *e)
{
	struct view name;

	if (view_ends(text, VIEW(".")))
		text = view_first(text, text.len - 1);
	if (text.len == 0)
		return err_set(e, -EINVAL, "host cannot be blank");
	*ret = changed_case(text, vault_lower);
	name = view_of(*ret);
	if (view_starts(name, VIEW("*.")))
		name = view_skip(name, 2);
	if (!is_fqdn(name))
		return err_set(e, -EINVAL,
			       "host \"" VIEW_FMT "\" must be a fully qualified name, or one "
			       "behind \"*.\": no address, scheme, port or path",
			       VIEW_ARG(view_first(text, 100)));
	return 0;
}

static int normal_method(struct view text, char **ret, struct err *e)
{
	if (text.len > 32 || !http1_is_token(text))
		return err_set(e, -EINVAL, "\"" VIEW_FMT "\" is no method",
			       VIEW_ARG(view_first(text, 32)));
	*ret = changed_case(text, vault_upper);
	return 0;
}

static int normal_path(struct view text, char **ret, struct err *e)
{
	if (!view_starts(text, VIEW("/")))
		return err_set(e, -EINVAL, "path pattern must start with /");
	*ret = mem_strndup(text.p, text.len);
	return 0;
}

static int normal_scheme(struct view text, char **ret, struct err *e)
{
	if (!view_iis(text, "http") && !view_iis(text, "https"))
		return err_set(e, -EINVAL, "unsupported scheme \"" VIEW_FMT "\"",
			       VIEW_ARG(view_first(text, 32)));
	*ret = changed_case(text, vault_lower);
	return 0;
}

static int read_ports(const struct json *match, unsigned *ret, struct err *e)
{
	const struct json *list = NULL;

	if (json_field_array(match, "ports", &list, e) < 0)
		return e->code;
	for (size_t i = 0; i < json_len(list); i++) {
		int64_t port;

		if (!json_int(json_at(list, i), &port) || (port != 80 && port != 443))
			return err_set(e, -EINVAL,
				       "match.ports: only 80 and 443 lead through the vault");
		*ret |= port == 80 ? 1 : 2;
	}
	return 0;
}

static int check_scope(const struct vault_binding *b, struct err *e)
{
	if (b->methods.len == 0 || b->paths.len == 0)
		return err_set(e, -EINVAL, "match.methods and match.paths must be given here");
	if (strv_has(&b->paths, "/*"))
		return err_set(e, -EINVAL, "match.paths must be narrower than /*");
	return 0;
}

static int read_match(const struct json *v, enum vault_flags flags, struct vault_binding *b,
		      struct err *e)
{
	static const char *const fields[] = {"hosts", "schemes", "ports", "methods", "paths", NULL};
	static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
	osb_cleanup(strv_done) struct strv schemes = STRV_INIT;

	if (vault_only_fields(v, "match", fields, e) < 0 ||
	    read_list(v, "schemes", normal_scheme, &schemes, e) < 0 ||
	    read_ports(v, &b->ports, e) < 0 ||
	    read_list(v, "hosts", normal_host, &b->hosts, e) < 0 ||
	    read_list(v, "methods", normal_method, &b->methods, e) < 0 ||
	    read_list(v, "paths", normal_path, &b->paths, e) < 0)
		return e->code;
	if (b->hosts.len == 0)
		return err_set(e, -EINVAL, "match.hosts cannot be empty");
	if ((flags & VAULT_SCOPED) && check_scope(b, e) < 0)
		return e->code;
	b->http = strv_has(&schemes, "http");
	b->https = strv_has(&schemes, "https") || schemes.len == 0;
	if (b->methods.len == 0)
		for (size_t i = 0; i < ARRAY_LEN(methods); i++)
			strv_add(&b->methods, methods[i]);
	if (b->paths.len == 0)
		strv_add(&b->paths, "/*");
	return 0;
}

/* ---- bindings ---- */

int vault_read_binding(const struct json *v, enum vault_flags flags, struct vault_binding *ret,
		       struct err *e)
{
	static const char *const fields[] = {"name", "match", "auth", NULL};
	osb_cleanup(vault_binding_done) struct vault_binding b = {0};

	if (vault_only_fields(v, "binding", fields, e) < 0 ||
	    vault_read_name(v, "binding", &b.name, e) < 0)
		return e->code;
	if (read_match(json_get(v, "match"), flags, &b, e) < 0 ||
	    vault_read_auth(json_get(v, "auth"), &b, e) < 0)
		return err_ctx(e, "binding \"%.64s\"", b.name);
	*ret = b;
	b = (struct vault_binding){0};
	return 0;
}

/* ---- life ---- */

static void needle_done(struct vault_needle *n)
{
	vault_wipe(n->value);
	free(n->text);
}

void vault_binding_done(struct vault_binding *b)
{
	free(b->name);
	strv_done(&b->hosts);
	strv_done(&b->methods);
	strv_done(&b->paths);
	for (size_t i = 0; i < b->injections_n; i++) {
		free(b->injections[i].name);
		free(b->injections[i].credential);
		vault_wipe(b->injections[i].value);
	}
	for (size_t i = 0; i < b->substitutions_n; i++) {
		free(b->substitutions[i].credential);
		free(b->substitutions[i].placeholder);
		for (size_t k = 0; k < VAULT_CODINGS_; k++)
			needle_done(&b->substitutions[i].needles[k]);
	}
	free(b->injections);
	free(b->substitutions);
	*b = (struct vault_binding){0};
}

void vault_binding_copy(const struct vault_binding *b, struct vault_binding *ret)
{
	*ret = (struct vault_binding){.name = mem_strdup(b->name),
				      .http = b->http,
				      .https = b->https,
				      .ports = b->ports,
				      .auth = b->auth,
				      .injections_n = b->injections_n,
				      .substitutions_n = b->substitutions_n};
	strv_copy(&ret->hosts, strv_args(&b->hosts));
	strv_copy(&ret->methods, strv_args(&b->methods));
	strv_copy(&ret->paths, strv_args(&b->paths));
	if (b->injections_n)
		ret->injections = mem_new_array(struct vault_injection, b->injections_n);
	for (size_t i = 0; i < b->injections_n; i++) {
		ret->injections[i].name = mem_strdup(b->injections[i].name);
		ret->injections[i].credential = mem_strdup(b->injections[i].credential);
	}
	if (b->substitutions_n)
		ret->substitutions = mem_new_array(struct vault_substitution, b->substitutions_n);
	for (size_t i = 0; i < b->substitutions_n; i++) {
		ret->substitutions[i].credential = mem_strdup(b->substitutions[i].credential);
		ret->substitutions[i].placeholder = mem_strdup(b->substitutions[i].placeholder);
		ret->substitutions[i].in = b->substitutions[i].in;
	}
}

/* ---- writing ---- */

static void write_list(struct json_writer *w, const char *key, const struct strv *s)
{
	json_write_key(w, key);
	json_write_array(w);
	for (size_t i = 0; i < s->len; i++)
		json_write_cstr(w, s->v[i]);
	json_write_array_end(w);
}

void vault_write_match(const struct vault_binding *b, struct json_writer *w)
{
	json_write_object(w);
	json_write_key(w, "schemes");
	json_write_array(w);
	if (b->https)
		json_write_cstr(w, "https");
	if (b->http)
		json_write_cstr(w, "http");
	json_write_array_end(w);
	if (b->ports) {
		json_write_key(w, "ports");
		json_write_array(w);
		if (b->ports & 1)
			json_write_int(w, 80);
		if (b->ports & 2)
			json_write_int(w, 443);
		json_write_array_end(w);
	}
	write_list(w, "hosts", &b->hosts);
	write_list(w, "methods", &b->methods);
	write_list(w, "paths", &b->paths);
	json_write_object_end(w);
}
