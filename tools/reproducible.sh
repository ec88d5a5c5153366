#!/usr/bin/env bash
# Builds the Debian packages of HEAD twice, from two folders whose names differ in length, and compares their bytes.
#
#   tools/reproducible.sh [FOLDER]    FOLDER: where the packages of the first build are put; build-package where none is given
#
# Without ccache, which would hand the second build the first one's objects. Exit 1 and the differing members if the
# bytes differ.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=${1:-build-package}
mkdir -p "$out"
out=$(cd "$out" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH CCACHE_DISABLE=1

for name in first a-second-folder/with-another-name; do
  [ $name = first ] || umask 077
  mkdir -p "$scratch/$name"
  git clone -q --depth 1 "file://$PWD" "$scratch/$name/ptxkit"
  (cd "$scratch/$name/ptxkit" && cmake --preset package && cmake --build build-package -j "${PTXKIT_JOBS:-$(nproc)}" --target packages) \
    >"$scratch/log" 2>&1 || { tail -30 "$scratch/log"; exit 1; }
done

status=0
first=$scratch/first/ptxkit/build-package second=$scratch/a-second-folder/with-another-name/ptxkit/build-package
for package in "$first"/*.deb; do
  name=$(basename "$package")
  cp "$package" "$out/"
  if cmp -s "$package" "$second/$name"; then
    echo "$name: the same $(stat -c %s "$package") bytes, SHA-256 $(sha256sum <"$package" | cut -c1-64)"
    continue
  fi
  status=1
  echo "$name: differs"
  for side in first second; do
    mkdir -p "$scratch/$side.$name"
    dpkg-deb -R "${!side}/$name" "$scratch/$side.$name"
  done
  (cd "$scratch" && diff -rq "first.$name" "second.$name") || true
done
[ "$(ls "$first"/*.deb | wc -l)" = "$(ls "$second"/*.deb | wc -l)" ] || { echo "another number of packages"; status=1; }
exit $status
