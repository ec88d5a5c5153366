#!/usr/bin/env bash
# Runs dsl-lint over every kernel: its cost declares the memory of its pointer parameters, with sizes that fit their
# types and each other, and its budget equals the size of its shared arrays. usage: kernel_costs.sh DSL_LINT BUILD
# KERNELS
set -u
lint=$1 build=$2 kernels=$3
failures=0
# expect CODE FILE...
expect() {
  local code=$1 found; shift
  "$lint" -p "$build" --costs --prelude "$kernels/kernels.hpp" "$@" >out 2>err; found=$?
  [ $found = "$code" ] || { echo "expected exit $code, found $found: $*"; head -c 2000 out; head -c 2000 err; failures=1; }
}
says() { grep -qF -- "$1" out err || { echo "expected: $1"; head -c 2000 out; failures=1; }; }
# changed AS SOURCE EDIT: makes AS/NAME from a kernel's source with a mistake edited into it; compiled with that NAME's
# flags.
mistakes=()
changed() {
  local file=$1/${2##*/}
  mkdir "$1"; sed "$3" "$kernels/$2" >"$file"; mistakes+=("$file")
  cmp -s "$kernels/$2" "$file" && { echo "$2 is as before: $3"; failures=1; }
}
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT && cd "$work"

mapfile -t all < <(grep -lE '^KernelDefinition [a-z0-9_]+\(\)' "$kernels"/*/*.cpp)
[ ${#all[@]} -ge 20 ] || { echo "expected twenty files of kernels, found ${#all[@]}"; failures=1; }
expect 0 "${all[@]}"

changed name lz77/demux.cpp 's/{"dst", kLzBlockRoom/{"target", kLzBlockRoom/'
changed budget lz77/match_finders.cpp 's/shared_bytes = kOwnedBuckets/shared_bytes = 2 * kOwnedBuckets/'
changed item pages/zero_page.cpp 's/{"src_sizes", 4}/{"src_sizes", 8}/'
changed elements lz4/lz4_two_phase.cpp 's/{"matches", 2 \* 4 \* kMaxPageMatches}/{"matches", N * 2}/'
changed whole lz77/match_finders.cpp 's/{"matches", N \* 12}/{"matches", N * 10}/'
changed parts lz77/demux.cpp 's/N \/ kLzSegmentBytes \* 16/N \/ kLzSegmentBytes * 16 + 2/'
changed words pages/zero_page.cpp 's/{"src", N}/{"src", SizeExpr(std::string("page").size())}/'
changed behind pages/zero_page.cpp 's/{"src_sizes", 4}/&, {"src_sizes[]", N}/'
expect 1 "${mistakes[@]}"
says "demux_scatter: no buffer of its cost is the parameter dst"
says "demux_scatter: the buffer target of its cost is no parameter"
says "lz77_link: its shared arrays take 8192 bytes, its budget has 16384"
says "zero_page: the buffer src_sizes of 8 bytes has not 1 elements of 4 bytes an item"
says "lz4_match_page: the buffer matches of N*2 bytes has not 2048 elements of 4 bytes an item"
says "lz77_hash: the buffer matches of N*10 bytes is no whole number of elements of 4"
says "demux_count: the buffer counts of N/4096*16+2 bytes is no whole number of elements of 4"
says "zero_page: the size of the buffer src is none that this tool understands"
says "zero_page: the buffer src_sizes[] of its cost is behind no array of addresses"
for file in name budget parts item elements whole words behind; do says "/$file/"; done
expect 2 "$kernels/bwt/bwt_reference.cpp"
says "no file holds a kernel"
exit $failures
