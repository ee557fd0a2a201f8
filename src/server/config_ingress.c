/*
 * server/config_ingress.c - gateways and their keys.
 */
#include "server/config_ingress.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "base/mem.h"
#include "codec/toml.h"
#include "policy/preview.h"
#include "server/config.h"

static int take_key(const struct toml *v, struct config *c, struct err *e)
{
	struct view id = VIEW_NONE, key = VIEW_NONE;
	struct route_key *k = &c->ingress_keys[c->ingress_keys_n];

	if (v->kind != TOML_TABLE)
		return err_set(e, -EINVAL,
			       "line %u: a key of ingress.secure_access is like "
			       "{ key_id = \"a\", key = \"base64\" }",
			       v->line);
	if (toml_field_string(v, "key_id", &id, e) < 0 || toml_field_string(v, "key", &key, e) < 0)
		return e->code;
	if (preview_key_parse(id, key, k, e) < 0)
		return err_ctx(e, "line %u: ingress.secure_access.keys", v->line);
	for (size_t i = 0; i < c->ingress_keys_n; i++)
		if (c->ingress_keys[i].id == k->id)
			return err_set(e, -EINVAL,
				       "line %u: ingress.secure_access.keys: there are two '%c'",
				       v->line, k->id);
	c->ingress_keys_n++;
	return 0;
}

int config_take_keys(const struct toml *table, struct config *c, struct err *e)
{
	const struct toml *array = NULL;
	int r = toml_field_array(table, "keys", &array, e);

	if (r <= 0)
		return r;
	if (array->len > PREVIEW_KEYS_MAX)
		return err_set(e, -E2BIG, "ingress.secure_access.keys: at most %d are possible",
			       PREVIEW_KEYS_MAX);
	config_free_keys(c);
	c->ingress_keys = mem_new_array(struct route_key, array->len + 1);
	for (const struct toml *v = array->first; v; v = v->next)
		if (take_key(v, c, e) < 0)
			return e->code;
	return 0;
}

void config_free_keys(struct config *c)
{
	if (c->ingress_keys)
		explicit_bzero(c->ingress_keys, c->ingress_keys_n * sizeof(*c->ingress_keys));
	free(c->ingress_keys);
	c->ingress_keys = NULL;
	c->ingress_keys_n = 0;
}

const struct route_key *config_active_key(const struct config *c)
{
	for (size_t i = 0; i < c->ingress_keys_n; i++)
		if (c->ingress_active_key[0] == c->ingress_keys[i].id)
			return &c->ingress_keys[i];
	return NULL;
}

static int check_keys(const struct config *c, struct err *e)
{
	if (!c->ingress_active_key && c->ingress_keys_n == 0)
		return 0;
	if (!c->ingress_gateway)
		return err_set(e, -EINVAL,
			       "ingress.secure_access is for ingress.mode = \"gateway\" only");
	if (!c->ingress_active_key || strlen(c->ingress_active_key) != 1)
		return err_set(e, -EINVAL,
			       "ingress.secure_access.active_key must be the key_id of a key");
	if (!config_active_key(c))
		return err_set(e, -EINVAL,
			       "ingress.secure_access.active_key: there is no key '%s' among keys",
			       c->ingress_active_key);
	return 0;
}

int config_check_ingress(struct config *c, struct err *e)
{
	enum preview_mode mode;

	c->ingress_gateway = strcasecmp(c->ingress_mode, "gateway") == 0;
	if (!c->ingress_gateway && (c->gateway_address || c->gateway_route_mode))
		return err_set(e, -EINVAL,
			       "ingress.gateway is for ingress.mode = \"gateway\" only");
	if (c->ingress_gateway) {
		if (!c->gateway_address || !c->gateway_route_mode)
			return err_set(e, -EINVAL,
				       "ingress.mode = \"gateway\" needs ingress.gateway.address "
				       "and ingress.gateway.route.mode");
		if (!preview_mode_parse(view_of(c->gateway_route_mode), &mode))
			return err_set(e, -EINVAL,
				       "ingress.gateway.route.mode is written in lower "
				       "case");
		if (preview_address_check(mode, view_of(c->gateway_address), e) < 0)
			return err_ctx(e, "ingress.gateway.address");
		c->gateway_mode = mode;
	}
	return check_keys(c, e);
}
