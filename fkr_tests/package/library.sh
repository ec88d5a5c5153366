#!/usr/bin/env bash
# Installs the package to a scratch folder, builds the examples of docs/examples/lz4_library with it and runs them.
# usage: library.sh CMAKE BUILD_FOLDER EXAMPLE_FOLDER
set -euo pipefail
cmake=$1 build=$2 example=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$cmake" --install "$build" --prefix "$scratch/prefix" --component development >"$scratch/log" \
  || { cat "$scratch/log"; exit 1; }
cp -r "$example" "$scratch/examples"
cd "$scratch/examples"
"$cmake" -B build -G Ninja -DCMAKE_PREFIX_PATH="$scratch/prefix" -DCMAKE_CXX_FLAGS='-Wall -Wextra -Werror' >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
"$cmake" --build build >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
build/page_cache
build/nbd_server 2>err && exit 1; grep -q 'usage: nbd_server' err
build/stream
seq 1 300000 >input
build/file input "$scratch/output" 2>progress
[ "$(tail -n 1 progress)" = "1988895 raw bytes, $(stat -c %s "$scratch/output.lz4") in the frame" ] || { cat progress; exit 1; }
if build/file /nowhere "$scratch/output" 2>err; then echo "a missing file should be an error"; exit 1; fi
grep -q "cannot open /nowhere" err
