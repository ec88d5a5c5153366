#!/usr/bin/env bash
# Makes docs/images/report.png: the HTML report of the misaligned example, as Chromium draws it.
# usage: tools/docs/report.sh PTX_DEBUG     (exit 77, and the old picture stays, where there is no Chromium)
set -euo pipefail
repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
program=$(realpath "$1")
if ! browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome); then
  echo "report.sh: SKIPPED: no Chromium (Debian: chromium); docs/images/report.png stays as it is" >&2
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cd "$repo/docs/examples"
"$program" analyze --no-config --check loaded-value --html "$folder/report.html" misaligned_cursor.ptx >/dev/null || [ $? -eq 3 ]
timeout 100 "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=1 \
  --user-data-dir="$folder/profile" --window-size=1000,720 --screenshot="$folder/report.png" \
  "file://$folder/report.html" >/dev/null 2>&1
cp "$folder/report.png" "$repo/docs/images/report.png"
