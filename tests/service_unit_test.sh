#!/usr/bin/env bash
# The systemd unit is one that systemd understands, starts a command line that dynamix understands, restarts it, and exposes
# little (systemd's own measure, 0 to 10).
#   service_unit_test.sh DYNAMIX SOURCE_DIR
set -euo pipefail
if ! command -v systemd-analyze >/dev/null; then
  echo "skipped: systemd-analyze is not here"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unit=$work/dynamix-arbitrator.service
sed "s#/usr/bin/dynamix#$1#" "$2/packaging/dynamix-arbitrator.service" > "$unit"
grep -q "^ExecStart=$1 " "$unit"
problems=$(systemd-analyze verify --man=no "$unit" 2>&1)
[ -z "$problems" ] || { echo "$problems"; exit 1; }
grep -q "^Restart=always$" "$unit"
systemd-analyze security --offline=true --no-pager --threshold=20 "$unit" > "$work/security" || { tail -1 "$work/security"; exit 1; }

# Its command, with the flags it has by default, on a free port and in a folder of its own.
read -ra flags <<< "$(sed -n 's/^Environment="DYNAMIX_ARBITRATOR_FLAGS=\(.*\)"$/\1/p' "$unit")"
read -ra command <<< "$(sed -n "s#^ExecStart=\(.*\) --run .*#\1#p" "$unit")"
"${command[@]}" --run "$work/run" "${flags[@]/%7040/0}" > "$work/hello" 2>&1 &
server=$!
until grep -q '"port"' "$work/hello"; do
  kill -0 $server 2>/dev/null || { cat "$work/hello"; exit 1; }
  sleep 0.05
done
kill -TERM $server
wait $server
