/*
 * policy/vault.c - the vault as a document: made, patched, shown, kept.
 */
#include "policy/vault.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "policy/vault_int.h"

/* ---- life ---- */

void vault_wipe(char *secret)
{
	if (!secret)
		return;
	explicit_bzero(secret, strlen(secret));
	free(secret);
}

static void credential_done(struct vault_credential *c)
{
	free(c->name);
	vault_wipe(c->value);
	*c = (struct vault_credential){0};
}

void vault_free(struct vault *v)
{
	if (!v)
		return;
	for (size_t i = 0; i < v->credentials_n; i++)
		credential_done(&v->credentials[i]);
	for (size_t i = 0; i < v->bindings_n; i++)
		vault_binding_done(&v->bindings[i]);
	for (size_t i = 0; i < v->redactions_n; i++)
		vault_wipe(v->redactions[i].text);
	free(v->credentials);
	free(v->bindings);
	free(v->redactions);
	free(v);
}

static struct vault *copy_of(const struct vault *old)
{
	struct vault *v = mem_new(struct vault);

	v->revision = old->revision;
	v->credentials = mem_new_array(struct vault_credential, VAULT_CREDENTIALS_MAX);
	v->bindings = mem_new_array(struct vault_binding, VAULT_BINDINGS_MAX);
	for (size_t i = 0; i < old->credentials_n; i++) {
		const struct vault_credential *c = &old->credentials[i];

		v->credentials[v->credentials_n++] = (struct vault_credential){
			mem_strdup(c->name), mem_strdup(c->value), c->revision};
	}
	for (size_t i = 0; i < old->bindings_n; i++)
		vault_binding_copy(&old->bindings[i], &v->bindings[v->bindings_n++]);
	return v;
}

/* ---- parts by name ---- */

const struct vault_credential *vault_find_credential(const struct vault *v, const char *name)
{
	for (size_t i = 0; i < v->credentials_n; i++)
		if (strcmp(v->credentials[i].name, name) == 0)
			return &v->credentials[i];
	return NULL;
}

static struct vault_binding *find_binding(const struct vault *v, const char *name)
{
	for (size_t i = 0; i < v->bindings_n; i++)
		if (strcmp(v->bindings[i].name, name) == 0)
			return &v->bindings[i];
	return NULL;
}

static int by_credential_name(const void *a, const void *b)
{
	return strcmp(((const struct vault_credential *)a)->name,
		      ((const struct vault_credential *)b)->name);
}

static int by_binding_name(const void *a, const void *b)
{
	return strcmp(((const struct vault_binding *)a)->name,
		      ((const struct vault_binding *)b)->name);
}

/* ---- operations: the same for credentials and bindings ---- */

struct kind {
	const char *what;
	bool (*has)(const struct vault *v, const char *name);
	void (*drop)(struct vault *v, const char *name);
	/* Reads one and adds it; its name was taken from it before. */
	int (*add)(struct vault *v, const struct json *item, enum vault_flags flags, struct err *e);
};

static bool has_credential(const struct vault *v, const char *name)
{
	return vault_find_credential(v, name) != NULL;
}

static void drop_credential(struct vault *v, const char *name)
{
	size_t i = (size_t)(vault_find_credential(v, name) - v->credentials);

	credential_done(&v->credentials[i]);
	v->credentials[i] = v->credentials[--v->credentials_n];
}

static int add_credential(struct vault *v, const struct json *item, enum vault_flags flags,
			  struct err *e)
{
	static const char *const fields[] = {"name", "source", NULL};
	static const char *const sources[] = {"type", "value", NULL};
	const struct json *source = json_get(item, "source");
	struct view type = VIEW_NONE, value = VIEW_NONE;
	osb_cleanup(mem_freep) char *name = NULL;

	(void)flags;
	if (vault_only_fields(item, "credential", fields, e) < 0 ||
	    vault_only_fields(source, "credential source", sources, e) < 0 ||
	    vault_read_name(item, "credential", &name, e) < 0)
		return e->code;
	if (json_field_string(source, "type", &type, e) < 0 ||
	    json_field_string(source, "value", &value, e) < 0)
		return err_ctx(e, "credential \"%.64s\"", name);
	type = vault_trim(type);
	if (type.len && !view_is(type, "inline"))
		return err_set(e, -EINVAL, "unsupported credential source type \"" VIEW_FMT "\"",
			       VIEW_ARG(view_first(type, 32)));
	if (value.len == 0 || value.len > VAULT_SECRET_MAX)
		return err_set(e, -EINVAL,
			       "credential \"%.64s\": the inline value cannot be empty, "
			       "nor longer than %u bytes",
			       name, VAULT_SECRET_MAX);
	if (v->credentials_n == VAULT_CREDENTIALS_MAX)
		return err_set(e, -EINVAL, "more than %d credentials", VAULT_CREDENTIALS_MAX);
	v->credentials[v->credentials_n++] = (struct vault_credential){
		take_ptr(name), mem_strndup(value.p, value.len), v->revision};
	return 0;
}

static bool has_binding(const struct vault *v, const char *name)
{
	return find_binding(v, name) != NULL;
}

static void drop_binding(struct vault *v, const char *name)
{
	struct vault_binding *b = find_binding(v, name);

	vault_binding_done(b);
	*b = v->bindings[--v->bindings_n];
}

static int add_binding(struct vault *v, const struct json *item, enum vault_flags flags,
		       struct err *e)
{
	if (v->bindings_n == VAULT_BINDINGS_MAX)
		return err_set(e, -EINVAL, "more than %d bindings", VAULT_BINDINGS_MAX);
	if (vault_read_binding(item, flags, &v->bindings[v->bindings_n], e) < 0)
		return e->code;
	v->bindings_n++;
	return 0;
}

static const struct kind credentials = {"credential", has_credential, drop_credential,
					add_credential};
static const struct kind bindings = {"binding", has_binding, drop_binding, add_binding};

static bool mention(struct strv *seen, const char *name)
{
	for (size_t i = 0; i < seen->len; i++)
		if (strcmp(seen->v[i], name) == 0)
			return false;
	strv_add(seen, name);
	return true;
}

static int add_all(struct vault *v, const struct kind *k, const struct json *list,
		   enum vault_flags flags, struct strv *seen, struct err *e)
{
	for (size_t i = 0; i < json_len(list); i++) {
		osb_cleanup(mem_freep) char *name = NULL;

		if (json_kind(json_at(list, i)) != JSON_OBJECT)
			return err_set(e, -EINVAL, "a %s must be an object", k->what);
		if (vault_read_name(json_at(list, i), k->what, &name, e) < 0)
			return e->code;
		if (!mention(seen, name))
			return err_set(e, -EINVAL, "%s \"%.64s\" is mentioned more than once",
				       k->what, name);
		if (k->has(v, name))
			return err_set(e, -EINVAL, "%s \"%.64s\" already exists", k->what, name);
		if (k->add(v, json_at(list, i), flags, e) < 0)
			return e->code;
	}
	return 0;
}

static int replace_all(struct vault *v, const struct kind *k, const struct json *list,
		       enum vault_flags flags, struct strv *seen, struct err *e)
{
	for (size_t i = 0; i < json_len(list); i++) {
		osb_cleanup(mem_freep) char *name = NULL;

		if (json_kind(json_at(list, i)) != JSON_OBJECT)
			return err_set(e, -EINVAL, "a %s must be an object", k->what);
		if (vault_read_name(json_at(list, i), k->what, &name, e) < 0)
			return e->code;
		if (!mention(seen, name))
			return err_set(e, -EINVAL, "%s \"%.64s\" is mentioned more than once",
				       k->what, name);
		if (!k->has(v, name))
			return err_set(e, -EINVAL, "%s \"%.64s\" does not exist", k->what, name);
		k->drop(v, name);
		if (k->add(v, json_at(list, i), flags, e) < 0)
			return e->code;
	}
	return 0;
}

static int delete_all(struct vault *v, const struct kind *k, const struct json *list,
		      struct strv *seen, struct err *e)
{
	for (size_t i = 0; i < json_len(list); i++) {
		osb_cleanup(mem_freep) char *name = NULL;
		struct view text;

		if (!json_str(json_at(list, i), &text) || memchr(text.p, '\0', text.len))
			return err_set(e, -EINVAL, "a %s to delete must be a name", k->what);
		text = vault_trim(text);
		if (text.len == 0 || text.len > VAULT_NAME_MAX)
			return err_set(e, -EINVAL, "%s delete name cannot be blank", k->what);
		name = mem_strndup(text.p, text.len);
		if (!mention(seen, name))
			return err_set(e, -EINVAL, "%s \"%.64s\" is mentioned more than once",
				       k->what, name);
		if (!k->has(v, name))
			return err_set(e, -EINVAL, "%s \"%.64s\" does not exist", k->what, name);
		k->drop(v, name);
	}
	return 0;
}

static int mutate(struct vault *v, const struct kind *k, const struct json *set,
		  enum vault_flags flags, struct err *e)
{
	static const char *const fields[] = {"add", "replace", "delete", NULL};
	const struct json *add = NULL, *replace = NULL, *drop = NULL;
	osb_cleanup(strv_done) struct strv seen = STRV_INIT;

	if (vault_only_fields(set, k->what, fields, e) < 0 ||
	    json_field_array(set, "add", &add, e) < 0 ||
	    json_field_array(set, "replace", &replace, e) < 0 ||
	    json_field_array(set, "delete", &drop, e) < 0)
		return e->code;
	/* Each name is looked for in a list: bounded here, not only by what a vault may hold. */
	if (json_len(add) + json_len(replace) + json_len(drop) > 4 * VAULT_CREDENTIALS_MAX)
		return err_set(e, -EINVAL, "too many changes of %ss at once", k->what);
	if (delete_all(v, k, drop, &seen, e) < 0 || replace_all(v, k, replace, flags, &seen, e) < 0)
		return e->code;
	return add_all(v, k, add, flags, &seen, e);
}

/* ---- whole vaults ---- */

static int check_references(const struct vault *v, struct err *e)
{
	for (size_t i = 0; i < v->bindings_n; i++) {
		const struct vault_binding *b = &v->bindings[i];
		const char *missing = NULL;

		for (size_t k = 0; k < b->injections_n; k++)
			if (!has_credential(v, b->injections[k].credential))
				missing = b->injections[k].credential;
		for (size_t k = 0; k < b->substitutions_n; k++)
			if (!has_credential(v, b->substitutions[k].credential))
				missing = b->substitutions[k].credential;
		if (missing)
			return err_set(e, -EINVAL,
				       "binding \"%.64s\" references unknown credential \"%.64s\"",
				       b->name, missing);
	}
	return 0;
}

static int finish(struct vault *v, const struct net_policy *policy, struct err *e)
{
	qsort(v->credentials, v->credentials_n, sizeof(*v->credentials), by_credential_name);
	qsort(v->bindings, v->bindings_n, sizeof(*v->bindings), by_binding_name);
	if (check_references(v, e) < 0 || vault_check_ambiguity(v, e) < 0 || vault_render(v, e) < 0)
		return e->code;
	return policy ? vault_accepts(v, policy, e) : 0;
}

static const struct vault nothing = {.revision = 1};

int vault_new(const struct json *doc, const struct net_policy *policy, enum vault_flags flags,
	      struct vault **ret, struct err *e)
{
	static const char *const fields[] = {"credentials", "bindings", NULL};
	osb_cleanup(vault_freep) struct vault *v = copy_of(&nothing);
	osb_cleanup(strv_done) struct strv seen = STRV_INIT, also = STRV_INIT;
	const struct json *secrets = NULL, *uses = NULL;

	if (doc && json_kind(doc) == JSON_NULL)
		doc = NULL;
	if (vault_only_fields(doc, "vault", fields, e) < 0 ||
	    json_field_array(doc, "credentials", &secrets, e) < 0 ||
	    json_field_array(doc, "bindings", &uses, e) < 0 ||
	    add_all(v, &credentials, secrets, flags, &seen, e) < 0 ||
	    add_all(v, &bindings, uses, flags, &also, e) < 0 || finish(v, policy, e) < 0)
		return e->code;
	*ret = take_ptr(v);
	return 0;
}

int vault_patch(const struct vault *old, const struct json *doc, const struct net_policy *policy,
		enum vault_flags flags, struct vault **ret, struct err *e)
{
	static const char *const fields[] = {"expectedRevision", "credentials", "bindings", NULL};
	osb_cleanup(vault_freep) struct vault *v = NULL;
	const struct json *secrets = NULL, *uses = NULL;
	int64_t expected = old->revision;

	if (doc && json_kind(doc) == JSON_NULL)
		doc = NULL;
	if (vault_only_fields(doc, "vault", fields, e) < 0 ||
	    json_field_int(doc, "expectedRevision", INT64_MIN, INT64_MAX, &expected, e) < 0 ||
	    json_field_object(doc, "credentials", &secrets, e) < 0 ||
	    json_field_object(doc, "bindings", &uses, e) < 0)
		return e->code;
	if (expected != old->revision)
		return err_set(e, -ESTALE,
			       "expectedRevision %lld does not match current revision %lld",
			       (long long)expected, (long long)old->revision);
	v = copy_of(old);
	v->revision++;
	if (mutate(v, &credentials, secrets, flags, e) < 0 ||
	    mutate(v, &bindings, uses, flags, e) < 0 || finish(v, policy, e) < 0)
		return e->code;
	*ret = take_ptr(v);
	return 0;
}
