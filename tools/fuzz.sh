#!/usr/bin/env bash
# Fuzzes every target for the given number of seconds (default 60) under ASan and UBSan, as many
# at once as there are cores.  FUZZ_TARGETS="name ..." picks some.  New inputs collect in
# build-fuzz/corpus, findings in build-fuzz/findings; prints executions and findings per target.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/env.sh

seconds=${1:-60}
dir=build-fuzz
cc=clang
command -v ccache >/dev/null && cc='ccache clang'

if [ ! -f $dir/build.ninja ]; then
	CC=$cc meson setup $dir --buildtype=debugoptimized -Db_sanitize=address,undefined \
		-Db_lundef=false -Dfuzz=true >$dir.log 2>&1 || { cat $dir.log >&2; exit 1; }
	mv $dir.log $dir/setup.log
fi
ninja -C $dir fuzz-targets >$dir/build.log || { cat $dir/build.log >&2; exit 1; }

fuzz_one() {
	local name=$1 seconds=$2 dir=$3 code=0 runs found
	mkdir -p "$dir/corpus/$name" "$dir/findings/$name" "$dir/logs"
	local seeds=()
	for seed in "fuzz/corpus/$name" "fuzz/regress/$name"; do
		[ -d "$seed" ] && seeds+=("$seed")
	done
	"$dir/fuzz/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
		-print_final_stats=1 -artifact_prefix="$dir/findings/$name/" \
		"$dir/corpus/$name" "${seeds[@]}" >"$dir/logs/$name.log" 2>&1 </dev/null || code=$?
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$dir/logs/$name.log")
	found=$(find "$dir/findings/$name" -type f -newer "$dir/started" | wc -l)
	printf '%-20s %12s executions  %s findings\n' "$name" "${runs:-?}" "$found"
	[ $code -eq 0 ] && [ "$found" -eq 0 ] && return 0
	tail -n 40 "$dir/logs/$name.log"
	return 1
}
export -f fuzz_one
touch $dir/started
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

listed=$(sed -n "/^fuzz_names = \[/,/^\]/s/^ *'\([a-z0-9_]*\)'.*/\1/p" fuzz/meson.build)
names=${FUZZ_TARGETS:-$listed}
# shellcheck disable=SC2086
printf '%s\n' $names | xargs -P "$(nproc)" -I{} bash -c "fuzz_one {} $seconds $dir"
