#!/usr/bin/env bash
# dsl-lint over every kernel: its cost names the memory that its parameters point to, its budget is what its shared
# arrays take. usage: kernel_costs.sh DSL_LINT BUILD KERNELS
set -u
lint=$1 build=$2 kernels=$3
failures=0
# expect CODE FILE...
expect() {
  local code=$1 found; shift
  "$lint" -p "$build" --costs "$@" >out 2>err; found=$?
  [ $found = "$code" ] || { echo "expected exit $code, found $found: $*"; head -c 2000 out; head -c 2000 err; failures=1; }
}
says() { grep -qF -- "$1" out err || { echo "expected: $1"; head -c 2000 out; failures=1; }; }
# A kernel's source with a mistake put into it.
changed() { sed "$2" "$kernels/$1" >"$(basename "$1")"; cmp -s "$kernels/$1" "$(basename "$1")" && { echo "$1 is as before: $2"; failures=1; }; }
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT && cd "$work"

mapfile -t all < <(grep -lE '^KernelDefinition [a-z0-9_]+\(\)' "$kernels"/*/*.cpp)
[ ${#all[@]} -ge 20 ] || { echo "expected twenty files of kernels, found ${#all[@]}"; failures=1; }
expect 0 "${all[@]}"

changed lz77/demux.cpp 's/{"dst", N \* 2/{"target", N * 2/'
expect 1 demux.cpp
says "demux_scatter: no buffer of its cost is the parameter dst"
says "demux_scatter: the buffer target of its cost is no parameter"
changed lz77/match_finders.cpp 's/shared_bytes = kOwnedBuckets/shared_bytes = 2 * kOwnedBuckets/'
expect 1 match_finders.cpp
says "lz77_link: its shared arrays take 4096 bytes, its budget has 8192"
changed bwt/bwt_rank.cpp 's/{"dst_rows", /{"lost_rows", /'
expect 1 bwt_rank.cpp
says "bwt_rank: the buffer lost_rows of its cost is no parameter"
expect 2 "$kernels/bwt/bwt_reference.cpp"
says "no file holds a kernel"
exit $failures
