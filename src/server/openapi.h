/*
 * server/openapi.h - specs/lifecycle.yaml as JSON, put into the program by the build.
 */
#pragma once

#include <stddef.h>

extern const unsigned char openapi_json[];
extern const size_t openapi_json_len;
