#!/usr/bin/env bash
# Installs the build into a temporary folder, builds tests/consumer against it and runs it. Moved elsewhere, the program still
# finds its data and its helpers.
#   consumer_test.sh BUILD_DIR SOURCE_DIR
set -euo pipefail
unset "${!DYNAMIX_@}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$1" --prefix "$work/prefix" >/dev/null
cmake -S "$2/tests/consumer" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/build" >/dev/null
"$work/build/consumer"
mv "$work/prefix" "$work/moved"
"$work/moved/bin/dynamix" --version
"$work/moved/bin/dynamix" list workloads --json >/dev/null
if [ -e "$work/moved/libexec/dynamix/dynamix-train" ]; then
  "$work/moved/bin/dynamix" train --help >/dev/null
fi
