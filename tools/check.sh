#!/usr/bin/env bash
# Everything that must hold before code lands: builds without warnings, lint, unit, fuzz-corpus
# and fault tests, component tests; the tests also under ASan and UBSan; nothing left behind.
# Logs are in build-check/logs.  The last line is `N passed, N failed`.
#
#   check.sh            everything
#   check.sh programs   the programs one by one
#   check.sh product    whole servers with real sandboxes, published clients, the emulated machine
set -uo pipefail
cd "$(dirname "$0")/.."
what=${1:-everything}
. tools/env.sh

out=$PWD/build-check
logs=$out/logs
python=/usr/bin/python3
passed=0 failed=0 remarks=()
started=$SECONDS

# The tests open a thousand connections.
ulimit -Sn 65536 2>/dev/null || ulimit -Sn "$(ulimit -Hn)"

mkdir -p "$logs"
rm -rf "${logs:?}"/*

# Of its own, so that what tests leave there is known to be theirs; short, for unix sockets.
TMPDIR=$(mktemp -d /tmp/osb.XXXXXX) || exit 1
chmod 755 "$TMPDIR" # programs that become another user read what tests put there
export TMPDIR
tidy_pid=
finish() {
	[ -n "$tidy_pid" ] && kill -- "-$tidy_pid" 2>/dev/null
	rm -rf "$TMPDIR"
}
trap finish EXIT
trap 'exit 130' INT TERM

export ASAN_OPTIONS=detect_leaks=1:halt_on_error=1:abort_on_error=0:detect_stack_use_after_return=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export LSAN_OPTIONS=print_suppressions=0

# note NAME PASSED FAILED SECONDS: one progress line; on failure the end of the log.
note() {
	local name=$1 ok=$2 bad=$3 took=$4 verdict=ok
	passed=$((passed + ok))
	failed=$((failed + bad))
	[ "$bad" -eq 0 ] || verdict=FAILED
	printf '%-26s %-7s %4d passed %3d failed  %4d s\n' "$name" "$verdict" "$ok" "$bad" "$took"
	[ "$bad" -eq 0 ] || tail -n "${TAIL_LINES:-60}" "$logs/$name.log" | sed 's/^/    /'
}

# stage NAME COMMAND...: one thing that holds or does not.
stage() {
	local name=$1 t=$SECONDS
	shift
	if "$@" >"$logs/$name.log" 2>&1 </dev/null; then
		note "$name" 1 0 $((SECONDS - t))
	else
		note "$name" 0 1 $((SECONDS - t))
		return 1
	fi
}

with_ccache() {
	if command -v ccache >/dev/null; then echo "ccache $1"; else echo "$1"; fi
}

# build DIR COMPILER OPTIONS...: configures once, then compiles everything with -Werror.
build() {
	local dir=$out/$1 cc
	cc=$(with_ccache "$2")
	shift 2
	[ -f "$dir/build.ninja" ] || CC=$cc meson setup "$dir" . -Dwerror=true "$@" || return 1
	ninja -C "$dir"
}

# No warning may hide in a link step either: -Werror does not reach the linker.
build_release() {
	build gcc gcc --buildtype=release | tee "$out/gcc.out" || return 1
	if grep 'warning:' "$out/gcc.out"; then
		return 1
	fi
	strip -o "$out/execd" "$out/gcc/src/execd/execd"
}

# watched NAME COMMAND...: runs it and remembers what it leaves behind.  A suite that left something
# is run once more: what it leaves then counts.
watched() {
	local name=$1 code=0
	shift
	"$python" tools/check_leftovers.py "$out/leftovers.$name" "$@" || code=$?
	if [ -s "$out/leftovers.$name" ]; then
		remarks+=("left once: $(head -n 1 "$out/leftovers.$name") ($name)")
		"$python" tools/check_leftovers.py "$out/leftovers.$name" "$@" \
			>"$logs/$name.again.log" 2>&1
	fi
	return $code
}

# meson_tests NAME DIR: every test program of a build directory.
meson_tests() {
	local name=$1 dir=$out/$2 t=$SECONDS code=0 ok bad
	if [ ! -f "$dir/build.ninja" ]; then
		echo "$dir was not built" >"$logs/$name.log"
		note "$name" 0 1 0
		return
	fi
	watched "$name" meson test -C "$dir" --no-rebuild --print-errorlogs -t 3 \
		>"$logs/$name.log" 2>&1 </dev/null || code=$?
	ok=$(sed -n 's/^Ok: *\([0-9]*\).*/\1/p' "$logs/$name.log")
	bad=$(sed -n 's/^\(Fail\|Timeout\|Unexpected Pass\): *\([0-9]*\).*/\2/p' "$logs/$name.log" |
		awk '{n += $1} END {print n + 0}')
	[ $code -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
	[ "$bad" -eq 0 ] || second_chance "$name" "$dir"
	note "$name" "${ok:-0}" "$bad" $((SECONDS - t))
}

# second_chance NAME DIR: programs that failed run again, alone; one that passes then is reported
# as flaky.  A sanitizer's report is final.  Changes the caller's ok and bad.
second_chance() {
	local name=$1 dir=$2 test
	if grep -qE 'Sanitizer|runtime error:' "$logs/$name.log"; then
		return
	fi
	while read -r test; do
		if meson test -C "$dir" --no-rebuild --print-errorlogs -t 3 "$test" \
			>>"$logs/$name.log" 2>&1 </dev/null; then
			remarks+=("flaky: $test ($name)")
			ok=$((ok + 1)) bad=$((bad - 1))
		fi
	done < <(sed -n 's/^ *[0-9]*\/[0-9]* .*opensandbox:\([^ ]*\) *\(FAIL\|TIMEOUT\).*/\1/p' \
		"$logs/$name.log" | sort -u)
}

# component_tests NAME BINARY VARIABLE DIRECTORY...: the whole program, through its sockets; the
# tests find it by the variable.  What follows the directory is pytest's.
component_tests() {
	local name=$1 t=$SECONDS ok=0 bad=1 line
	if [ ! -x "$2" ]; then
		echo "$2 was not built" >"$logs/$name.log"
		note "$name" 0 1 0
		return
	fi
	rm -f "$out/$name/summary"
	export "$3=$2"
	shift 3
	watched "$name" "$python" tools/component.py "$out/$name" "$@" \
		>"$logs/$name.log" 2>&1 </dev/null
	[ -f "$out/$name/summary" ] && read -r ok bad <"$out/$name/summary"
	note "$name" "$ok" "$bad" $((SECONDS - t))
	while read -r line; do
		remarks+=("$line ($name)")
	done < <(tail -n +2 "$out/$name/summary" 2>/dev/null)
}

no_leftovers() {
	if grep -H . "$out"/leftovers.*; then
		return 1
	fi
}

tidy_in_background() {
	rm -f "$out/tidy.code"
	# Its own process group, and polite: tests have the right of way, and all but one processor.
	local jobs=$(($(nproc) > 1 ? $(nproc) - 1 : 1))
	TIDY_JOBS=$jobs setsid bash -c "
		nice -n 15 $python tools/tidy.py >'$logs/clang-tidy.log' 2>&1 </dev/null
		echo \$? >'$out/tidy.code'" &
	tidy_pid=$!
	tidy_started=$SECONDS
}

wait_for_tidy() {
	wait "$tidy_pid"
	tidy_pid=
	if [ "$(cat "$out/tidy.code" 2>/dev/null)" = 0 ]; then
		note clang-tidy 1 0 $((SECONDS - tidy_started))
	else
		note clang-tidy 0 1 $((SECONDS - tidy_started))
	fi
}

rm -f "$out"/leftovers.*
stage deps tools/deps.sh all
[ -x "$python" ] || python=python3

check_programs() {
	stage build-gcc build_release
	stage build-sanitized build sanitized clang --buildtype=debugoptimized \
		-Db_sanitize=address,undefined -Db_lundef=false

	tidy_in_background
	stage format tools/format.sh --check
	stage layers "$python" tools/check_layers.py
	stage style "$python" tools/check_style.py
	[ ! -f tools/check_api.py ] || stage api "$python" tools/check_api.py

	meson_tests unit-release gcc
	meson_tests unit-sanitized sanitized
	component_tests component-release "$out/execd" EXECD tests/component
	# Without the languages whose drivers no sanitizer looks into.
	component_tests component-sanitized "$out/sanitized/src/execd/execd" EXECD tests/component \
		--ignore-glob='*/test_code_[gjkst]*.py'
	local warden=src/warden/opensandbox-warden
	component_tests warden-release "$out/gcc/$warden" WARDEN tests/warden
	component_tests warden-sanitized "$out/sanitized/$warden" WARDEN tests/warden
	local imager=src/imager/opensandbox-image
	component_tests image-release "$out/gcc/$imager" IMAGER tests/image
	component_tests image-sanitized "$out/sanitized/$imager" IMAGER tests/image
	local egress=src/egress/opensandbox-egress
	component_tests egress-release "$out/gcc/$egress" EGRESS tests/egress
	component_tests egress-sanitized "$out/sanitized/$egress" EGRESS tests/egress
}

# The programs side by side, as they are installed.
gather_programs() {
	mkdir -p "$out/bin"
	cp "$out/execd" "$out/gcc/src/warden/opensandbox-warden" \
		"$out/gcc/src/server/opensandbox-server" "$out/gcc/src/imager/opensandbox-image" \
		"$out/gcc/src/imager/opensandbox-registry" \
		"$out/gcc/src/egress/opensandbox-egress" \
		"$out/gcc/src/ingress/opensandbox-ingress" "$out/gcc/src/cli/osb" \
		"$out/gcc/src/mcp/opensandbox-mcp" "$out/bin/"
	cp "$out/gcc/src/sdk/libopensandbox.so.1.0.0" "$out/bin/libopensandbox.so.1"
}

check_product() {
	[ -x "$out/execd" ] || stage build-gcc build_release
	stage programs gather_programs
	stage deps-guest tools/deps.sh guest
	export E2E_CHURN=1000
	component_tests e2e "$out/bin" OPENSANDBOX_BIN tests/e2e
	component_tests escape "$out/bin" OPENSANDBOX_BIN tests/escape
	component_tests ingress-release "$out/bin" OPENSANDBOX_BIN tests/ingress
	component_tests conformance "$out/bin" OPENSANDBOX_BIN tests/conformance
	component_tests guest "$out/bin" OPENSANDBOX_BIN tests/guest
	component_tests cli "$out/bin" OPENSANDBOX_BIN tests/cli
	component_tests mcp "$out/bin" OPENSANDBOX_BIN tests/mcp
	component_tests sdk "$out/bin" OPENSANDBOX_BIN tests/sdk
	[ ! -d "$out/sanitized/src/sdk" ] ||
		component_tests sdk-sanitized "$out/sanitized/src/sdk" SDK_DIR tests/sdk
}

case $what in
everything)
	check_programs
	check_product
	;;
programs) check_programs ;;
product) check_product ;;
*)
	echo "usage: check.sh [programs|product]" >&2
	exit 2
	;;
esac
[ -z "$tidy_pid" ] || wait_for_tidy
stage leftovers no_leftovers

echo
for remark in "${remarks[@]}"; do
	echo "$remark"
done
echo "took $((SECONDS - started)) s; logs are in build-check/logs"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
