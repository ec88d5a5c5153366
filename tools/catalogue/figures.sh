#!/usr/bin/env bash
# The figures of docs/analyzer.md, on PTX of your own: figures.sh PTX_DEBUG FOLDER [MANIFEST]. Needs ptxas.
# What ptxas accepts below FOLDER is taken for correct; MANIFEST (see budget.py) saves asking it. Checkouts of labelled
# kernels named by SANITIZER and GPUVERIFY (see recall.py, needs nvcc) are looked at too.
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: $0 PTX_DEBUG FOLDER [MANIFEST]" >&2; exit 64; }
here=$(dirname "$(realpath "$0")")
program=$1 folder=$2

echo "== false alarms"
"$here/budget.py" "$program" "$folder" ${3:+--manifest "$3"}

echo "== known defects"
"$here/recall.py" "$program" ${SANITIZER:+--sanitizer "$SANITIZER"} ${GPUVERIFY:+--gpuverify "$GPUVERIFY"} \
  --good "$folder" --every 20 --largest 60000

echo "== speed, on every hundredth file by size, one of 30 MiB, and 4 million lines in one call"
mapfile -t files < <(find "$folder" -name '*.ptx' -printf '%s\t%p\n' | sort -n | awk -F'\t' 'NR % 100 == 1 {print $2}')
"$here/speed.py" "$program" "${files[@]}" --generate 30 --total 4000000 --start

echo "== speed beside ptxas on every file (EVERY=N: on each N-th); takes as long as ptxas -O3 does on them"
"$here/speed.py" "$program" --set "$folder" --every "${EVERY:-1}"
