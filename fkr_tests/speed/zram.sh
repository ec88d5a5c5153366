#!/usr/bin/env bash
# The same memory pages in the kernel's zram, with lz4 and with lzo-rle, and in the page cache of
# docs/examples/page_cache: what they take, and how fast they go in and out.
#
# usage: zram.sh PAGE_CACHE DUMP    PAGE_CACHE: the built example; DUMP: a file of pages of 4 KiB, such as pages.bin of
#                                   the corpus. Needs root, and a kernel with zram.
#
# dd goes through the device a page at a time past the page cache (O_DIRECT), three times each; the fastest counts.
# Exit: 0 measured, 1 failed, 77 skipped (no DUMP, no root, or no zram).
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: zram.sh PAGE_CACHE DUMP" >&2; exit 2; }
page_cache=$1 dump=$2
skip() { echo "SKIPPED: $1"; exit 77; }
[ -r "$dump" ] || skip "there is no page dump $dump (the corpus)"
[ "$(id -u)" = 0 ] || skip "a zram device needs root"
[ -e /sys/class/zram-control ] || modprobe zram num_devices=0 2>/dev/null || true
[ -e /sys/class/zram-control ] || skip "the kernel has no zram, and modprobe zram finds none"

[ -w /sys/class/zram-control/hot_remove ] || skip "/sys cannot be written here"

page_count=$(( $(stat -c %s "$dump") / 4096 ))
[ "$page_count" -gt 0 ] || skip "$dump has no whole page"
bytes=$((page_count * 4096))
device=
release() {
  [ -n "$device" ] || return 0
  echo 1 >"/sys/block/zram$device/reset"
  echo "$device" >/sys/class/zram-control/hot_remove
  device=
}
trap release EXIT

# Seconds of dd with these words.
seconds() {
  local begin end
  begin=$(date +%s%N)
  dd "$@" bs=4096 count=$page_count status=none
  end=$(date +%s%N)
  echo $(( end - begin ))
}
megabytes_per_second() { echo $(( bytes * 1000 / $1 )); }

# zram, with an algorithm.
measure() {
  local algorithm=$1 put= get= run now
  for run in 1 2 3; do
    device=$(cat /sys/class/zram-control/hot_add)
    if ! echo "$algorithm" 2>/dev/null >"/sys/block/zram$device/comp_algorithm"; then
      echo "zram $algorithm: this kernel's zram lacks it: $(cat "/sys/block/zram$device/comp_algorithm")"
      release
      return 0
    fi
    echo "$bytes" >"/sys/block/zram$device/disksize"
    now=$(seconds if="$dump" of="/dev/zram$device" oflag=direct conv=notrunc)
    [ -n "$put" ] && [ "$put" -le "$now" ] || put=$now
    now=$(seconds if="/dev/zram$device" of=/dev/null iflag=direct)
    [ -n "$get" ] && [ "$get" -le "$now" ] || get=$now
    cmp -n "$bytes" "$dump" "/dev/zram$device" || { echo "zram $algorithm gave other bytes" >&2; exit 1; }
    # orig_data_size compr_data_size mem_used_total mem_limit mem_used_max same_pages pages_compacted huge_pages ...
    local -a stat
    read -r -a stat <"/sys/block/zram$device/mm_stat"
    [ "$run" = 3 ] && printf 'zram %s: %d pages, %d bytes stored (%d with the allocator), same-filled %d, stored as they are %d, put %d MB/s, get %d MB/s\n' \
      "$algorithm" "$page_count" "${stat[1]}" "${stat[2]}" "${stat[5]}" "${stat[7]:-0}" \
      "$(megabytes_per_second "$put")" "$(megabytes_per_second "$get")"
    release
  done
}

echo "$(uname -r), $(nproc) processors, $dump"
measure lz4
measure lzo-rle
figures=$("$page_cache" "$dump")
echo "page_cache: ${figures//$'\n'/, }"
