/*
 * codec/label.h - metadata keys and values: the rules of Kubernetes labels.
 */
#pragma once

#include <stdbool.h>

#include "base/view.h"

bool label_key_valid(struct view key);
bool label_value_valid(struct view value);
bool label_key_reserved(struct view key); /* "opensandbox.io/..." */
