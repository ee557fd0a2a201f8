/*
 * cli/config_file.h - osb's own part of ~/.opensandbox/config.toml.
 */
#pragma once

struct cli;

/* A value of the file, to be freed; NULL = it is not there (or the file is none). */
char *config_file_get(struct cli *c, const char *section, const char *key);
