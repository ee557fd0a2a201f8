/*
 * server/config_schema.h - every key of the configuration: its type, default and meaning.
 *
 * Reading, `init-config` and docs/configuration.md all follow from this table.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/view.h"

enum config_type {
	CONFIG_STRING,
	CONFIG_INT,
	CONFIG_BOOL,
	CONFIG_STRINGS, /* an array of them */
	CONFIG_SIZE,	/* "50Gi" */
	CONFIG_ALIASES, /* a whole section: pattern = "image" */
	CONFIG_MIRRORS, /* a whole section: registry = ["address", ...] */
	CONFIG_KEYS,	/* an array of tables: key_id and key */
	CONFIG_TYPES_
};

struct config_key {
	const char *section; /* "native", "native.aliases" */
	const char *name;
	enum config_type type;
	size_t at;		    /* in struct config */
	int64_t min, max;	    /* of a number */
	const char *const *choices; /* of a string, case ignored; or NULL: any */
	const char *initial; /* as TOML; NULL = not set, and an empty string is not set either */
	const char *meaning;
};

extern const struct config_key config_keys[]; /* section after section; ends with a NULL section */

/* What the protocol's other servers know and this one does not need: whole sections too. */
struct config_idle {
	const char *name; /* "docker", "server.loop" */
	const char *why;
};

extern const struct config_idle config_idle[]; /* ends with a NULL name */

const char *config_section_meaning(const char *section);
const char *config_type_name(enum config_type type); /* "string", "number", ... */

bool config_is_section(enum config_type type); /* one whose keys are not known before */

/* "server.port" */
const struct config_key *config_key_find(struct view full_name);
const struct config_idle *config_idle_find(struct view full_name);

struct buf;

/* The reference as Markdown tables. 0 or -E2BIG. */
int config_write_reference(struct buf *out);

/* A file to begin with: every key with its meaning and default, or with `example` only what a
 * first server needs; `api_key` is put in. */
int config_write_file(struct buf *out, bool example, const char *api_key);
