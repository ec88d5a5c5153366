#!/usr/bin/env bash
# Installs the package to a scratch folder and builds the tests of docs/examples/kernel_tests with it: the written one and
# the one that gen-fkr writes pass; against kernels with a planted change the latter fails.
# usage: kernel_tests.sh CMAKE BUILD_FOLDER EXAMPLE_FOLDER PTX_DEBUG
set -euo pipefail
cmake=$1 build=$2 example=$3 ptx_debug=$4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$cmake" --install "$build" --prefix "$scratch/prefix" --component development >"$scratch/install.log" \
  || { cat "$scratch/install.log"; exit 1; }
cp -r "$example" "$scratch/tests"
cd "$scratch/tests"
"$ptx_debug" gen-fkr saxpy.ptx --launch saxpy.launch.json -o saxpy_fkr_test.cpp
"$cmake" -B build -G Ninja -DCMAKE_PREFIX_PATH="$scratch/prefix" >"$scratch/configure.log" 2>&1 \
  || { cat "$scratch/configure.log"; exit 1; }
"$cmake" --build build >"$scratch/build.log" 2>&1 || { cat "$scratch/build.log"; exit 1; }
build/saxpy_test
build/saxpy_fkr_test

# Planted changes: one in what it computes, one in what it accesses, one in what it is.
planted=0
for change in 's/fma.rn.f32 %y, %a, %x, %y/fma.rn.f32 %y, %a, %y, %x/' 's/setp.ge.u32/setp.gt.u32/' 's/.reqntid 128/.reqntid 64/'; do
  sed "$change" saxpy.ptx >changed.ptx
  cmp -s saxpy.ptx changed.ptx && { echo "nothing changed by $change"; exit 1; }
  if FKR_PTX=$PWD/changed.ptx build/saxpy_fkr_test >changed.log; then echo "not seen: $change"; exit 1; fi
  planted=$((planted + 1))
done
echo "$planted planted changes, all seen"
