#!/usr/bin/env bash
# Installs the package to a scratch folder and builds docs/examples/c_api and page_cache with it, by CMake, and the first
# by pkg-config too, with the shared library and with the archive, and runs the programs.
# usage: c_api.sh CMAKE BUILD_FOLDER FOLDER_OF_EXAMPLES
set -euo pipefail
cmake=$1 build=$2 example=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for component in library development; do
  "$cmake" --install "$build" --prefix "$scratch/a prefix" --component $component >"$scratch/log" || { cat "$scratch/log"; exit 1; }
done
cp -r "$example/page_cache" "$scratch/page_cache"
cp -r "$example/c_api" "$scratch/examples"
cd "$scratch/examples"

check() {  # FOLDER: of the programs
  "$1/page_cache" | grep -q '^1000 pages of 4096 bytes kept in [0-9]* bytes$' || { echo "page_cache of $1"; exit 1; }
  "$1/kernel" >out || { cat out; exit 1; }
  grep -q '"kind": "out_of_bounds"' out || { cat out; exit 1; }
  seq 1 300000 >input
  "$1/file" input packed back >out 2>err; cmp input back
  grep -q "^1988895 raw bytes, $(stat -c %s packed) in the frame$" out || { cat out; exit 1; }
  grep -q "^1988895 raw bytes, " err || { cat err; exit 1; }
  ! "$1/file" /nowhere packed back 2>err || exit 1
  grep -q "^compress: .*/nowhere" err || { cat err; exit 1; }
  touch STOP; rm packed
  ! "$1/file" input packed back 2>err || exit 1
  rm STOP; [ ! -e packed ] || exit 1
  for codec in lz4 lzr; do
    "$1/stream" $codec <input >packed 2>err; "$1/stream" -d <packed >back 2>>err
    cmp input back; [ "$(stat -c %s packed)" -lt 1500000 ] || exit 1
  done
  ! "$1/stream" none <input >packed 2>err || exit 1
  grep -q "there is no codec 'none'" err
}

"$cmake" -B build -G Ninja -DCMAKE_PREFIX_PATH="$scratch/a prefix" -DCMAKE_C_FLAGS='-Wall -Wextra -Werror -pedantic' \
  -DCMAKE_CXX_FLAGS='-Wall -Wextra -Werror' >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
"$cmake" --build build >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
check build
"$cmake" -S ../page_cache -B ../page_cache/build -G Ninja -DCMAKE_PREFIX_PATH="$scratch/a prefix" \
  -DCMAKE_CXX_FLAGS='-Wall -Wextra -Werror' >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
"$cmake" --build ../page_cache/build >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
../page_cache/build/page_cache
../page_cache/build/nbd_server 2>err && exit 1; grep -q 'usage: nbd_server' err

if ! command -v pkg-config >/dev/null; then
  echo "not tested: pkg-config is missing"
  exit 0
fi
PKG_CONFIG_PATH=$(dirname "$(find "$scratch/a prefix" -name ptxkit.pc)")
export PKG_CONFIG_PATH
mkdir shared archive
flags=$(pkg-config --cflags --libs ptxkit)
library=$(dirname "$PKG_CONFIG_PATH")
eval "cc -std=c99 -o shared/page_cache page_cache.c $flags"
eval "cc -std=c99 -o shared/kernel kernel.c $flags"
eval "cc -std=c99 -o shared/file file.c $flags"
eval "c++ -std=c++20 -o shared/stream stream.cpp $flags"
LD_LIBRARY_PATH=$library check shared
flags=$(pkg-config --static --cflags --libs ptxkit | sed 's/-lptxkit/-l:libptxkit.a/')
eval "cc -std=c99 -o archive/page_cache page_cache.c $flags"
eval "cc -std=c99 -o archive/kernel kernel.c $flags"
eval "cc -std=c99 -o archive/file file.c $flags"
eval "c++ -std=c++20 -o archive/stream stream.cpp $flags"
check archive
