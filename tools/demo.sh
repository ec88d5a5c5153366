#!/usr/bin/env bash
# What `./dev run` shows: kernels that survive the analyzer, one that does not, and a file compressed with the default
# backend and read back. Every step is checked; the script fails when one does not come out as said.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin=$PWD/build/bin
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Bold on a terminal only: a log of CI is read as text.
bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\033[1m' plain=$'\033[0m'; fi
say() { printf '\n%s\n' "$bold$*$plain"; }

say "1. ptxkit's own kernels, written in its DSL, against the whole catalogue"
"$bin/ptx-debug" analyze --falsify --min-score 90 build/ptx/lz4_compress_page.sm_80.ptx \
  build/ptx/lz4_compress_chunk.sm_80.ptx build/ptx/lz4_decompress.sm_80.ptx build/ptx/zero_page.sm_80.ptx

say "2. a kernel that reads a word at a byte position (docs/examples/misaligned_cursor.cu): error 716 on a GPU"
status=0
"$bin/ptx-debug" analyze docs/examples/misaligned_cursor.ptx || status=$?
[ "$status" -eq 3 ] || { echo "expected exit status 3, found $status" >&2; exit 1; }
echo "exit status 3: a critical finding"

input=../shared/corpus/alice29.txt
[ -f "$input" ] || input=fkr_tests/golden/lz4_compress_page.sm_75.ptx
say "3. $input, compressed and read back"
"$bin/ptx-pack" -v "$input" -o "$scratch/file.lz4"
"$bin/ptx-pack" --list "$scratch/file.lz4"
"$bin/ptx-pack" -d "$scratch/file.lz4" -o "$scratch/file"
cmp "$input" "$scratch/file"
head -c 65536 "$input" > "$scratch/head"
"$bin/ptx-pack" --reproducible "$scratch/head" -o "$scratch/cpu.lz4"
"$bin/ptx-pack" --backend emulator --reproducible "$scratch/head" -o "$scratch/emulator.lz4"
cmp "$scratch/cpu.lz4" "$scratch/emulator.lz4"
echo "read back unchanged; the kernel on the PTX emulator gives the same bytes as the CPU reference"
