#!/usr/bin/env bash
# Makes report.png beside this script: the HTML report of the example, as Chromium draws it.
# usage: docs/images/report.sh [PTX_DEBUG]     (default: build/bin/ptx-debug)
set -euo pipefail
repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
program=$(realpath "${1:-$repo/build/bin/ptx-debug}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cd "$repo/docs/examples"
"$program" analyze --no-config --check loaded-value --html "$folder/report.html" misaligned_cursor.ptx >/dev/null || [ $? -eq 3 ]
timeout 100 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=1 \
  --user-data-dir="$folder/profile" --window-size=860,900 --screenshot="$folder/report.png" \
  "file://$folder/report.html" >/dev/null 2>&1
cp "$folder/report.png" "$repo/docs/images/report.png"
