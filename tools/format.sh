#!/usr/bin/env bash
# Formats every C file in place; with --check only says which ones differ, and fails if any does.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/env.sh

mapfile -t files < <(find src include examples tests fuzz bench -name '*.[ch]' | sort)
if [ "${1:-}" = --check ]; then
	clang-format --dry-run --Werror "${files[@]}"
else
	clang-format -i "${files[@]}"
fi
