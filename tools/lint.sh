#!/usr/bin/env bash
# Everything that judges the source without running it.  LINT_FAST=1 leaves clang-tidy out.
set -uo pipefail
cd "$(dirname "$0")/.."
. tools/env.sh

failed=0
run() {
	local name=$1
	shift
	if "$@"; then
		echo "lint: $name ok"
	else
		echo "lint: $name FAILED"
		failed=1
	fi
}

run format tools/format.sh --check
run layers /usr/bin/python3 tools/check_layers.py
run style /usr/bin/python3 tools/check_style.py
[ -f tools/check_api.py ] && run api /usr/bin/python3 tools/check_api.py
[ -n "${LINT_FAST:-}" ] || run clang-tidy /usr/bin/python3 tools/tidy.py
exit $failed
