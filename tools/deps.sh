#!/usr/bin/env bash
# Installs what is missing from the Debian packages: `deps.sh build` what the programs need to
# compile, `deps.sh all` what tests and checks need as well, `deps.sh bench` what is measured
# against, `deps.sh guest` what it takes to boot another kernel.  Silent when nothing is missing.
set -euo pipefail

build=(gcc libc6-dev binutils meson ninja-build pkg-config libuv1-dev libjansson-dev
	libseccomp-dev libsqlite3-dev libcurl4-openssl-dev zlib1g-dev
	libzstd-dev libssl-dev nftables python3 python3-yaml)
checks=(git g++ clang clang-format clang-tidy libclang-rt-14-dev llvm libcmocka-dev curl
	iproute2 bind9-dnsutils python3-pytest docker-registry mmdebstrap zstd busybox-static
	openssl redis-tools
	python3-matplotlib python3-pandas python3-plotly sqlite3
	python3-ipykernel python3-jupyter-client node-typescript)
bench=(wrk nginx-light)
guest=(qemu-system-x86 busybox-static e2fsprogs)

# Languages of code contexts: whatever version is there is good enough.
[ -x "$(command -v node)" ] || checks+=(nodejs)
[ -x "$(command -v jshell)" ] || checks+=(default-jdk-headless)
[ -x "$(command -v go)" ] || [ -x /usr/local/go/bin/go ] || checks+=(golang-go)

case "${1:-all}" in
build) wanted=("${build[@]}") ;;
all) wanted=("${build[@]}" "${checks[@]}") ;;
bench) wanted=("${bench[@]}") ;;
guest) wanted=("${guest[@]}") ;;
*)
	echo "usage: $0 [build|all|bench|guest]" >&2
	exit 2
	;;
esac

if ! command -v dpkg-query >/dev/null; then
	echo "deps: no dpkg here; these Debian packages or their like are needed: ${wanted[*]}" >&2
	exit 0
fi

installed=$(dpkg-query -W -f='${binary:Package} ${db:Status-Status}\n' 2>/dev/null |
	sed -n 's/^\([^ :]*\)\(:[^ ]*\)\? installed$/\1/p')
# Transitional names are provided by others.
provided=$(dpkg-query -W -f='${Provides}\n' 2>/dev/null | tr ',' '\n' | awk '{print $1}')
missing=()
for package in "${wanted[@]}"; do
	grep -qxF "$package" <<<"$installed" || grep -qxF "$package" <<<"$provided" ||
		missing+=("$package")
done
[ "${#missing[@]}" -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
	if ! command -v sudo >/dev/null; then
		echo "deps: missing ${missing[*]}; install them as root or install sudo" >&2
		exit 1
	fi
	as_root=(sudo)
fi

echo "deps: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q
	--no-install-recommends "${missing[@]}")

# Package lists may be absent or too old to name files that still exist: refresh them only then.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! "${install[@]}" >"$log" 2>&1 </dev/null; then
	echo "deps: refreshing the package lists"
	"${as_root[@]}" apt-get update -q >"$log" 2>&1 </dev/null || true
	if ! "${install[@]}" >>"$log" 2>&1 </dev/null; then
		tail -n 30 "$log" >&2
		exit 1
	fi
fi
