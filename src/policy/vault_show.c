/*
 * policy/vault_show.c - a vault written as JSON: for clients without secrets, for its keeper with.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "codec/json.h"
#include "codec/json_copy.h"
#include "codec/json_writer.h"
#include "policy/vault_int.h"

int64_t vault_revision(const struct vault *v)
{
	return v->revision;
}

static void write_credential(const struct vault_credential *c, struct json_writer *w)
{
	json_write_object(w);
	json_put_cstr(w, "name", c->name);
	json_put_cstr(w, "sourceType", "inline");
	json_put_int(w, "revision", c->revision);
	json_write_object_end(w);
}

static void write_binding(const struct vault *v, const struct vault_binding *b,
			  struct json_writer *w)
{
	json_write_object(w);
	json_put_cstr(w, "name", b->name);
	json_put_int(w, "revision", v->revision);
	json_write_key(w, "match");
	vault_write_match(b, w);
	json_write_key(w, "auth");
	json_write_object(w);
	json_put_cstr(w, "type", vault_auth_name[b->auth]);
	if (b->auth == VAULT_API_KEY)
		json_put_cstr(w, "name", b->injections[0].name);
	json_write_object_end(w);
	json_write_object_end(w);
}

static void put_credentials(const struct vault *v, struct json_writer *w)
{
	json_write_key(w, "credentials");
	json_write_array(w);
	for (size_t i = 0; i < v->credentials_n; i++)
		write_credential(&v->credentials[i], w);
	json_write_array_end(w);
}

static void put_bindings(const struct vault *v, struct json_writer *w)
{
	json_write_key(w, "bindings");
	json_write_array(w);
	for (size_t i = 0; i < v->bindings_n; i++)
		write_binding(v, &v->bindings[i], w);
	json_write_array_end(w);
}

void vault_write_state(const struct vault *v, struct json_writer *w)
{
	json_write_object(w);
	json_put_int(w, "revision", v->revision);
	put_credentials(v, w);
	put_bindings(v, w);
	json_write_object_end(w);
}

void vault_write_credentials(const struct vault *v, struct json_writer *w)
{
	json_write_object(w);
	json_put_int(w, "revision", v->revision);
	put_credentials(v, w);
	json_write_object_end(w);
}

void vault_write_bindings(const struct vault *v, struct json_writer *w)
{
	json_write_object(w);
	json_put_int(w, "revision", v->revision);
	put_bindings(v, w);
	json_write_object_end(w);
}

bool vault_write_credential(const struct vault *v, struct view name, struct json_writer *w)
{
	for (size_t i = 0; i < v->credentials_n; i++)
		if (view_is(name, v->credentials[i].name)) {
			write_credential(&v->credentials[i], w);
			return true;
		}
	return false;
}

bool vault_write_binding(const struct vault *v, struct view name, struct json_writer *w)
{
	for (size_t i = 0; i < v->bindings_n; i++)
		if (view_is(name, v->bindings[i].name)) {
			write_binding(v, &v->bindings[i], w);
			return true;
		}
	return false;
}

/* ---- documents ---- */

void vault_write_document(const struct vault *v, struct json_writer *w)
{
	json_write_object(w);
	json_put_int(w, "revision", v->revision);
	json_write_key(w, "written");
	json_write_object(w);
	for (size_t i = 0; i < v->credentials_n; i++)
		json_put_int(w, v->credentials[i].name, v->credentials[i].revision);
	json_write_object_end(w);
	json_write_key(w, "request");
	json_write_object(w);
	json_write_key(w, "credentials");
	json_write_array(w);
	for (size_t i = 0; i < v->credentials_n; i++) {
		json_write_object(w);
		json_put_cstr(w, "name", v->credentials[i].name);
		json_write_key(w, "source");
		json_write_object(w);
		json_put_cstr(w, "value", v->credentials[i].value);
		json_write_object_end(w);
		json_write_object_end(w);
	}
	json_write_array_end(w);
	json_write_key(w, "bindings");
	json_write_array(w);
	for (size_t i = 0; i < v->bindings_n; i++) {
		json_write_object(w);
		json_put_cstr(w, "name", v->bindings[i].name);
		json_write_key(w, "match");
		vault_write_match(&v->bindings[i], w);
		json_write_key(w, "auth");
		vault_write_auth_document(&v->bindings[i], w);
		json_write_object_end(w);
	}
	json_write_array_end(w);
	json_write_object_end(w);
	json_write_object_end(w);
}

int vault_restore(const struct json *doc, struct vault **ret, struct err *e)
{
	const struct json *written = NULL;
	int64_t revision = 0;
	struct vault *v;

	if (json_field_int(doc, "revision", 1, INT64_MAX, &revision, e) < 0 ||
	    json_field_object(doc, "written", &written, e) < 0)
		return e->code;
	if (revision == 0)
		return err_set(e, -EINVAL, "the vault's document has no revision");
	if (vault_new(json_get(doc, "request"), NULL, 0, &v, e) < 0)
		return e->code;
	v->revision = revision;
	for (size_t i = 0; i < v->credentials_n; i++) {
		int64_t n;

		if (json_int(json_get(written, v->credentials[i].name), &n) && n >= 1 &&
		    n <= revision)
			v->credentials[i].revision = n;
	}
	*ret = v;
	return 0;
}

/* ---- hosts ---- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorted, each once: the same vault is always written the same. */
void vault_hosts_write(const struct vault *v, struct json_writer *w)
{
	osb_cleanup(strv_done) struct strv all = STRV_INIT;

	for (size_t i = 0; i < v->bindings_n; i++)
		strv_copy(&all, v->bindings[i].hosts.v);
	if (all.len)
		qsort(all.v, all.len, sizeof(*all.v), by_text);
	json_write_array(w);
	for (size_t i = 0; i < all.len; i++)
		if (i == 0 || strcmp(all.v[i - 1], all.v[i]) != 0)
			json_write_string(w, view_of(all.v[i]));
	json_write_array_end(w);
}

int vault_hosts_read(const struct json *v, struct strv *ret, struct err *e)
{
	osb_cleanup(strv_done) struct strv all = STRV_INIT;
	struct view host;

	if (v && json_kind(v) != JSON_ARRAY && json_kind(v) != JSON_NULL)
		return err_set(e, -EINVAL, "the hosts of a vault must be an array");
	if (json_len(v) > VAULT_PATTERNS_MAX)
		return err_set(e, -EINVAL, "more than %d hosts", VAULT_PATTERNS_MAX);
	for (size_t i = 0; i < json_len(v); i++) {
		if (!json_str(json_at(v, i), &host) || host.len == 0 ||
		    host.len > VAULT_NAME_MAX + 2 || memchr(host.p, '\0', host.len))
			return err_set(e, -EINVAL, "a host of a vault must be a name");
		strv_add_view(&all, host);
	}
	*ret = all;
	all = STRV_INIT;
	return 0;
}
