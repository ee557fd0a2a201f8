# Sourced by the scripts beside it: the same surroundings on every machine.
umask 022
export LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
# The system's tools first: meson, pytest and yaml come from Debian's packages.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH
# A cache in the checkout where there is no home to keep one.
[ -w "${HOME:-/nonexistent}" ] || export CCACHE_DIR=$PWD/.cache/ccache
