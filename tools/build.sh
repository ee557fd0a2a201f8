#!/usr/bin/env bash
# Builds the programs and the C library in release mode; programs end up stripped at
# build/<program>, the library at build/libopensandbox.so.1.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/env.sh

if [ ! -f build/build.ninja ]; then
	log=$(mktemp)
	trap 'rm -f "$log"' EXIT
	if ! meson setup build --buildtype=release -Dtests=false >"$log" 2>&1; then
		cat "$log" >&2
		exit 1
	fi
fi
ninja -C build
for made in build/src/execd/execd build/src/warden/opensandbox-warden \
	build/src/server/opensandbox-server build/src/imager/opensandbox-image \
	build/src/imager/opensandbox-registry build/src/egress/opensandbox-egress \
	build/src/ingress/opensandbox-ingress build/src/cli/osb build/src/mcp/opensandbox-mcp; do
	program=${made##*/}
	if [ ! -f "$made" ]; then
		echo "$made was not built" >&2
		exit 1
	fi
	if [ "$made" -nt "build/$program" ]; then
		strip -o "build/$program.new" "$made"
		mv "build/$program.new" "build/$program"
	fi
	echo "build/$program: $(stat -c %s "build/$program") bytes"
done
cp -p build/src/sdk/libopensandbox.so.1.0.0 build/libopensandbox.so.1
