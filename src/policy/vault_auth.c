/*
 * policy/vault_auth.c - what a binding adds to a request: headers, and values for placeholders.
 */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "codec/http1.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "policy/vault_int.h"

const char *const vault_auth_name[VAULT_AUTHS_] = {
	[VAULT_BEARER] = "bearer",	     [VAULT_BASIC] = "basic",
	[VAULT_API_KEY] = "apiKey",	     [VAULT_CUSTOM_HEADERS] = "customHeaders",
	[VAULT_PASSTHROUGH] = "passthrough",
};

static const struct {
	const char *name;
	enum vault_place place;
} places[] = {
	{"path", VAULT_IN_PATH},
	{"query", VAULT_IN_QUERY},
	{"header", VAULT_IN_HEADER},
	{"body", VAULT_IN_BODY},
};

/* Headers that carry a message or tell where it comes from: no credential belongs there. */
static const char *const reserved[] = {
	"host",
	"content-length",
	"content-type",
	"transfer-encoding",
	"connection",
	"upgrade",
	"te",
	"trailer",
	"proxy-connection",
	"proxy-authorization",
	"proxy-authenticate",
	"forwarded",
	"x-forwarded-for",
	"x-forwarded-host",
	"x-forwarded-proto",
	"keep-alive",
	"expect",
	"content-encoding",
};

bool vault_header_reserved(struct view name)
{
	for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
		if (view_iis(name, reserved[i]))
			return true;
	return false;
}

static int read_reference(const struct json *v, const char *what, char **ret, struct err *e)
{
	struct view name = VIEW_NONE;

	if (json_field_string(v, "credential", &name, e) < 0)
		return e->code;
	name = vault_trim(name);
	if (name.len == 0 || name.len > VAULT_NAME_MAX)
		return err_set(e, -EINVAL, "%s requires credential", what);
	*ret = mem_strndup(name.p, name.len);
	return 0;
}

/* X-Api-Key: the first letter of each part is big, the others are small. */
static char *canonical(struct view name)
{
	char *text = mem_strndup(name.p, name.len);
	bool first = true;

	for (char *p = text; *p; p++) {
		*p = (char)(first ? vault_upper((unsigned char)*p)
				  : vault_lower((unsigned char)*p));
		first = *p == '-';
	}
	return text;
}

static int read_header(const struct json *v, struct vault_binding *b, struct err *e)
{
	struct vault_injection *h = &b->injections[b->injections_n];
	struct view name = VIEW_NONE;

	if (json_field_string(v, "name", &name, e) < 0)
		return e->code;
	name = vault_trim(name);
	if (name.len > 128 || !http1_is_token(name))
		return err_set(e, -EINVAL, "invalid credential header name \"" VIEW_FMT "\"",
			       VIEW_ARG(view_first(name, 64)));
	if (vault_header_reserved(name))
		return err_set(e, -EINVAL, "reserved credential header name \"" VIEW_FMT "\"",
			       VIEW_ARG(name));
	for (size_t i = 0; i < b->injections_n; i++)
		if (view_iis(name, b->injections[i].name))
			return err_set(e, -EINVAL, "duplicate custom header name \"" VIEW_FMT "\"",
				       VIEW_ARG(name));
	h->name = canonical(name);
	b->injections_n++;
	return read_reference(v, h->name, &h->credential, e);
}

static int read_headers(const struct json *v, struct vault_binding *b, struct err *e)
{
	static const char *const fields[] = {"name", "credential", NULL};
	const struct json *list = NULL;

	if (json_field_array(v, "headers", &list, e) < 0)
		return e->code;
	if (json_len(list) == 0 || json_len(list) > VAULT_LIST_MAX)
		return err_set(e, -EINVAL, "customHeaders auth requires headers, at most %d",
			       VAULT_LIST_MAX);
	b->injections = mem_new_array(struct vault_injection, json_len(list));
	for (size_t i = 0; i < json_len(list); i++)
		if (vault_only_fields(json_at(list, i), "auth.headers", fields, e) < 0 ||
		    read_header(json_at(list, i), b, e) < 0)
			return e->code;
	return 0;
}

static int read_places(const struct json *v, unsigned *ret, struct err *e)
{
	const struct json *list = NULL;

	if (json_field_array(v, "in", &list, e) < 0)
		return e->code;
	for (size_t i = 0; i < json_len(list); i++) {
		struct view name = VIEW_NONE;
		size_t k = 0;

		(void)json_str(json_at(list, i), &name); /* what is no text is no place either */
		while (k < ARRAY_LEN(places) && !view_is(name, places[k].name))
			k++;
		if (k == ARRAY_LEN(places))
			return err_set(e, -EINVAL,
				       "a substitution is in path, query, header or body");
		*ret |= places[k].place;
	}
	if (*ret == 0)
		return err_set(e, -EINVAL, "a substitution needs a place to be in");
	return 0;
}

static int read_substitution(const struct json *v, struct vault_binding *b, struct err *e)
{
	static const char *const fields[] = {"credential", "placeholder", "in", NULL};
	struct vault_substitution *s = &b->substitutions[b->substitutions_n];
	struct view text = VIEW_NONE;

	if (vault_only_fields(v, "auth.substitutions", fields, e) < 0 ||
	    json_field_string(v, "placeholder", &text, e) < 0)
		return e->code;
	if (text.len == 0 || text.len > VAULT_PLACEHOLDER_MAX)
		return err_set(e, -EINVAL, "a placeholder has 1 to %d bytes",
			       VAULT_PLACEHOLDER_MAX);
	for (size_t i = 0; i < b->substitutions_n; i++)
		if (view_is(text, b->substitutions[i].placeholder))
			return err_set(e, -EINVAL, "the same placeholder is given twice");
	s->placeholder = mem_strndup(text.p, text.len);
	b->substitutions_n++;
	if (read_places(v, &s->in, e) < 0)
		return e->code;
	return read_reference(v, "a substitution", &s->credential, e);
}

static int read_substitutions(const struct json *v, struct vault_binding *b, struct err *e)
{
	const struct json *list = NULL;

	if (json_field_array(v, "substitutions", &list, e) < 0)
		return e->code;
	if (json_len(list) > VAULT_LIST_MAX)
		return err_set(e, -EINVAL, "more than %d substitutions", VAULT_LIST_MAX);
	if (json_len(list) > 0)
		b->substitutions = mem_new_array(struct vault_substitution, json_len(list));
	for (size_t i = 0; i < json_len(list); i++)
		if (read_substitution(json_at(list, i), b, e) < 0)
			return e->code;
	return 0;
}

int vault_read_auth(const struct json *v, struct vault_binding *b, struct err *e)
{
	static const char *const fields[] = {"type",	"credential",	 "name",
					     "headers", "substitutions", NULL};
	struct view type = VIEW_NONE;
	size_t kind = 0;
	int r = 0;

	if (vault_only_fields(v, "auth", fields, e) < 0 ||
	    json_field_string(v, "type", &type, e) < 0)
		return e->code;
	type = vault_trim(type);
	while (kind < VAULT_AUTHS_ && !view_is(type, vault_auth_name[kind]))
		kind++;
	if (kind == VAULT_AUTHS_)
		return err_set(e, -EINVAL, "unsupported auth type \"" VIEW_FMT "\"",
			       VIEW_ARG(view_first(type, 32)));
	b->auth = (enum vault_auth)kind;
	switch (b->auth) {
	case VAULT_BEARER:
	case VAULT_BASIC:
		b->injections = mem_new_array(struct vault_injection, 1);
		b->injections_n = 1;
		b->injections[0].name = mem_strdup("Authorization");
		r = read_reference(v, vault_auth_name[kind], &b->injections[0].credential, e);
		break;
	case VAULT_API_KEY:
		b->injections = mem_new_array(struct vault_injection, 1);
		r = read_header(v, b, e);
		break;
	case VAULT_CUSTOM_HEADERS:
		r = read_headers(v, b, e);
		break;
	case VAULT_PASSTHROUGH:
	case VAULT_AUTHS_:
		break;
	}
	return r < 0 ? r : read_substitutions(v, b, e);
}

static void write_substitutions(const struct vault_binding *b, struct json_writer *w)
{
	json_write_key(w, "substitutions");
	json_write_array(w);
	for (size_t i = 0; i < b->substitutions_n; i++) {
		const struct vault_substitution *s = &b->substitutions[i];

		json_write_object(w);
		json_put_cstr(w, "credential", s->credential);
		json_put_cstr(w, "placeholder", s->placeholder);
		json_write_key(w, "in");
		json_write_array(w);
		for (size_t k = 0; k < ARRAY_LEN(places); k++)
			if (s->in & places[k].place)
				json_write_cstr(w, places[k].name);
		json_write_array_end(w);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void write_reference(const struct vault_injection *h, bool named, struct json_writer *w)
{
	if (named)
		json_put_cstr(w, "name", h->name);
	json_put_cstr(w, "credential", h->credential);
}

void vault_write_auth_document(const struct vault_binding *b, struct json_writer *w)
{
	json_write_object(w);
	json_put_cstr(w, "type", vault_auth_name[b->auth]);
	if (b->auth == VAULT_CUSTOM_HEADERS) {
		json_write_key(w, "headers");
		json_write_array(w);
		for (size_t i = 0; i < b->injections_n; i++) {
			json_write_object(w);
			write_reference(&b->injections[i], true, w);
			json_write_object_end(w);
		}
		json_write_array_end(w);
	} else if (b->injections_n == 1) {
		write_reference(&b->injections[0], b->auth == VAULT_API_KEY, w);
	}
	if (b->substitutions_n)
		write_substitutions(b, w);
	json_write_object_end(w);
}
