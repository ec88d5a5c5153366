#!/usr/bin/env bash
# Installs the package to a scratch folder and builds the tests of docs/examples/kernel_tests with it: the written one and
# the one that gen-fkr writes pass; against kernels with a planted change the latter fails (planted_changes.py).
# usage: kernel_tests.sh CMAKE BUILD_FOLDER EXAMPLE_FOLDER PTX_DEBUG
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
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

# What it writes notices every change: of the example, of a kernel that takes an aggregate, and of kernels that take
# textures, surfaces, samplers and tensor maps.
cp "$here/gather.ptx" "$here/images.ptx" "$here/../cli/ptx-debug/inputs/named_images.ptx" .
"$here/planted_changes.py" "$ptx_debug" "$here/planted_changes_here.json" . "$scratch/planted" "$scratch/prefix" >"$scratch/planted.log" 2>&1 \
  || { cat "$scratch/planted.log"; exit 1; }
tail -1 "$scratch/planted.log"

# The same launches through the driver API, by a driver that has the emulator for a GPU.
for test in saxpy gather images; do
  PTXKIT_LIBCUDA="$build/tests/libemulatedcuda.so" "$scratch/planted/build/${test}_fkr_test" >"$scratch/driver.log" 2>&1 \
    || { cat "$scratch/driver.log"; exit 1; }
  if grep SKIPPED "$scratch/driver.log"; then exit 1; fi
done
PTXKIT_LIBCUDA="$build/tests/libemulatedcuda.so" "$scratch/planted/build/named_images_fkr_test" >"$scratch/driver.log" 2>&1
grep -q 'cuda: a driver makes no samplers apart from textures' "$scratch/driver.log" || { cat "$scratch/driver.log"; exit 1; }
