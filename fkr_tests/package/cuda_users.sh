#!/usr/bin/env bash
# Builds docs/examples/c_api/cuda with nvcc and runs the programs on a GPU, also under compute-sanitizer's four tools.
# Exit status 77, with the reason, without nvcc or a GPU.
# usage: cuda_users.sh HEADER_FOLDER LIBRARY_FOLDER EXAMPLE_FOLDER
set -euo pipefail
headers=$1 libraries=$2 example=$3
command -v nvcc >/dev/null || { echo "skipped: nvcc is missing"; exit 77; }
nvidia-smi -L 2>/dev/null | grep -q GPU || { echo "skipped: there is no GPU"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for program in batch hostile; do
  nvcc -std=c++17 -O2 -o "$scratch/$program" "$example/$program.cu" -I"$headers" -L"$libraries" -lptxkit
done
export LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
seq 1 3000000 >"$scratch/numbers"
for framing in 0 1 3; do
  for item_bytes in 4096 65536 5000000; do "$scratch/batch" "$scratch/numbers" $item_bytes 1 $framing; done
done
"$scratch/hostile"
command -v compute-sanitizer >/dev/null || { echo "not tested: compute-sanitizer is missing"; exit 0; }
head -c 200000 "$scratch/numbers" >"$scratch/few"
for tool in memcheck racecheck initcheck synccheck; do
  for program in "$scratch/batch $scratch/few 70000" "$scratch/batch $scratch/few 70000 1 1" "$scratch/hostile"; do
    compute-sanitizer --tool $tool --error-exitcode 3 $program >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
  done
done
echo "compute-sanitizer: no fault"
