#!/usr/bin/env bash
# Starts build/execd on the loopback address, for trying it out, and says what to type.
set -euo pipefail
cd "$(dirname "$0")/.."

port=${1:-44772}
cat <<EOF
execd listens on http://127.0.0.1:$port (end it with Ctrl-C).  In another terminal:

  curl http://127.0.0.1:$port/ping
  curl -N http://127.0.0.1:$port/command -d '{"command":"uname -a; echo done"}'
  curl 'http://127.0.0.1:$port/files/download?path=/etc/hostname'

EOF
exec build/execd --listen "tcp:127.0.0.1:$port"
