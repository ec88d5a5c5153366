#!/usr/bin/env bash
# Runs dsl-lint over all sources that launch kernels: regions of device memory have the sizes that the kernels declare.
# usage: region_sizes.sh DSL_LINT BUILD SOURCES
set -u
lint=$1 build=$2 sources=$3
kernels=$sources/runtime/codec/device
failures=0
# expect CODE FILE...
expect() {
  local code=$1 found; shift
  "$lint" -p "$build" --regions "$@" >out 2>err; found=$?
  [ $found = "$code" ] || { echo "expected exit $code, found $found: $*"; head -c 2000 out; head -c 2000 err; failures=1; }
}
# refuses NAME SOURCE COUNT EDIT: expects COUNT findings in a source with a mistake edited into it; the file keeps its
# name.
refuses() {
  local file=$1/${2##*/} found
  mkdir "$1"; sed "$4" "$2" >"$file"
  cmp -s "$2" "$file" && { echo "$2 is as before: $4"; failures=1; }
  expect 1 "$file"
  found=$(grep -c "/$1/.*: the size of a region is not what a kernel declares; name the region, and let DeclaredCosts::regions size it by the calls that take it" out)
  [ "$found" = "$3" ] || { echo "expected $3 findings, found $found: $4"; head -c 2000 out; failures=1; }
}
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT && cd "$work"

mapfile -t all < <(grep -rlE '(machine|kernel_call|declared_costs|lz_calls|block_pipeline)\.hpp"' --include=*.cpp "$sources"/{runtime,tools})
[ ${#all[@]} -ge 9 ] || { echo "expected nine files, found ${#all[@]}"; failures=1; }
expect 0 "${all[@]}"

refuses bound "$kernels/lz_pipeline.cpp" 1 's/  lay_out(queue, blocks);/&\n  const Region by_hand[] = {{"lz blocks", kernels::lz_block_bound(9)}};\n  (void)by_hand;/'
refuses more "$kernels/bbw_pipeline.cpp" 1 's/const auto plan = costs_.plan(kEncodeRegions, encode_calls(count, strides));/auto plan = costs_.plan(kEncodeRegions, encode_calls(count, strides));\n    plan->regions[kRaw].size_bytes += 16;/'
refuses alias "$kernels/kernel_backend.cpp" 1 's/regions\[kRaw\].host = raw_at;/&\n      std::size_t\& size = regions[kRaw].size_bytes;\n      size = 1;/'
refuses rounded "$kernels/declared_costs.cpp" 2 's/std::max(region.size_bytes, \*needed)/std::max(region.size_bytes, *needed + 64)/'
refuses doubled "$kernels/declared_costs.cpp" 1 's/return buffer->bytes.evaluate(launch);/return 2 * *buffer->bytes.evaluate(launch);/'
expect 2 "$kernels/lz_calls.cpp"
grep -qF "no file makes a region" err || { echo "expected: no file makes a region"; failures=1; }
exit $failures
