/*
 * cli/skills.h - texts for coding agents, part of the program (tools/embed_skills.py).
 */
#pragma once

#include <stddef.h>

struct skill {
	const char *name;
	const char *text; /* markdown with a head of "name" and "description" */
};

extern const struct skill skills[]; /* to one without a name */
