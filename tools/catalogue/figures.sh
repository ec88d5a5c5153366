#!/usr/bin/env bash
# The figures of docs/analyzer.md for other PTX files: figures.sh PTX_DEBUG FOLDER [MANIFEST]
#
# Needs Python 3 and ptxas. The files below FOLDER that ptxas accepts are assumed to be correct; docs/analyzer.md
# describes how to collect such a folder. With MANIFEST (see budget.py) ptxas need not be run. Optional environment
# variables:
#   SANITIZER=CHECKOUT   of NVIDIA/compute-sanitizer-samples, and
#   GPUVERIFY=CHECKOUT   of mc-imperial/gpuverify: kernels with labels, for recall; both need nvcc
#   EVERY=N              compares the speed with ptxas on each N-th file (1); all files take as long as ptxas -O3 does
#   SPEED=0              no times, since they mean little on a busy machine
set -euo pipefail
here=$(dirname "$(realpath "$0")")

refuse() { echo "figures.sh: $1" >&2; exit 64; }
[ $# -eq 2 ] || [ $# -eq 3 ] || refuse "expected PTX_DEBUG FOLDER [MANIFEST], found $# words"
program=$1 folder=$2
[ -x "$program" ] || refuse "$program: expected the program ptx-debug; build it with './dev build ptx-debug'"
mapfile -t files < <(find "$folder" -name '*.ptx' -printf '%s\t%p\n' | sort -n | cut -f 2-)
[ ${#files[@]} -gt 0 ] || refuse "$folder: expected files named *.ptx, found none; docs/analyzer.md says how to gather some"
for tool in python3 ptxas ${SANITIZER:+nvcc} ${GPUVERIFY:+nvcc}; do
  command -v "$tool" >/dev/null || refuse "expected $tool on PATH, found none; ptxas and nvcc come with the CUDA toolkit"
done

echo "== false alarms"
"$here/budget.py" "$program" "$folder" ${3:+--manifest "$3"}

echo "== and with advice: what raising it would do"
"$here/budget.py" "$program" "$folder" ${3:+--manifest "$3"} --advice

echo "== known defects"
"$here/recall.py" "$program" ${SANITIZER:+--sanitizer "$SANITIZER"} ${GPUVERIFY:+--gpuverify "$GPUVERIFY"} \
  --good "$folder" --every 20 --largest 60000

[ "${SPEED:-1}" != 0 ] || exit 0
echo "== speed, on up to forty files of all sizes, one of 30 MiB, and 4 million lines in one call"
some=()
for ((i = ${#files[@]} - 1; i >= 0; i -= (${#files[@]} + 39) / 40)); do some+=("${files[i]}"); done
"$here/speed.py" "$program" "${some[@]}" --generate 30 --total 4000000 --start

echo "== speed beside ptxas on every file"
"$here/speed.py" "$program" --set "$folder" --every "${EVERY:-1}"
