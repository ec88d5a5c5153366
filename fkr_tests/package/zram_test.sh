#!/usr/bin/env bash
# Tests fkr_tests/speed/zram.sh: it skips with a reason, measures where there is zram, and leaves no device.
# usage: zram_test.sh PAGE_CACHE
set -euo pipefail
page_cache=$1
source_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
zram() { "$source_folder/fkr_tests/speed/zram.sh" "$page_cache" "$1" >"$work/out"; }
fail() { echo "FAILED: $1"; cat "$work/out"; exit 1; }

status=0; zram "$work/nothing" || status=$?
[ $status = 77 ] && grep -q "^SKIPPED: there is no page dump $work/nothing" "$work/out" || fail "a missing dump is not a reason to skip"
# 100 pages of zeros, 100 of text, 100 of noise.
seq 100000 >"$work/text"
{ head -c 409600 /dev/zero; head -c 409600 "$work/text"; head -c 409600 /dev/urandom; } >"$work/pages"
before=$(ls /sys/block 2>/dev/null || true)
status=0; zram "$work/pages" || status=$?
[ $status != 77 ] || { cat "$work/out"; exit 77; }
[ $status = 0 ] || fail "exit $status"
for line in 'zram lz4' 'zram lzo-rle' 'page_cache'; do
  grep -q "^$line: " "$work/out" || fail "no figures of $line"
done
grep -q '^zram lz4: .*lacks it' "$work/out" ||
  grep -qE '^zram lz4: 300 pages, [0-9]+ bytes stored .*, same-filled 100, .* put [0-9]+ MB/s, get [0-9]+ MB/s$' "$work/out" || fail "figures of zram"
grep -qE '^page_cache: 300 pages, [0-9]+ bytes stored, zero 100, stored as they are 100, ratio [0-9.]+, put [0-9]+ MB/s, get [0-9]+ MB/s$' "$work/out" || fail "figures of page_cache"
[ "$(ls /sys/block)" = "$before" ] || fail "a device is left"
cat "$work/out"
