#!/usr/bin/env bash
# Tests `ptx-debug trace` on a program built by nvcc: it loads a fat binary through libcuda, once as a linked function
# and once by cuGetProcAddress, and its kernel runs. The saved image is the PTX that nvcc wrote, and it is analyzed. The
# driver is the one whose GPU is the emulator.
# usage: cuda_program.sh PTX_DEBUG LIBEMULATEDCUDA REPOSITORY; exit 77 without nvcc.
set -euo pipefail
ptx_debug=$1 driver=$2 source=$3/fkr_tests/cli/trace/saxpy.cu
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
nvcc_options=(-arch=compute_75 -lineinfo -I "$3")
[ -x "$nvcc" ] || { echo "NOT RUN: nvcc is not installed"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
mkdir driver
ln -s "$driver" driver/libcuda.so.1
export LD_LIBRARY_PATH=$scratch/driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

"$nvcc" "${nvcc_options[@]}" -ptx "$source" -o expected.ptx
"$nvcc" "${nvcc_options[@]}" -fatbin "$source" -o saxpy.fatbin
"$nvcc" "${nvcc_options[@]}" "$source" -lcuda -o saxpy

for way in linked looked-up; do
  code=0
  "$ptx_debug" trace -o $way -- ./saxpy saxpy.fatbin $way >$way.txt || code=$?
  cat $way.txt
  "$ptx_debug" diff expected.ptx $way/0001.ptx  # a fat binary has the text without comments
  [ $code = 3 ] || { echo "exit $code; expected 3, of the critical finding"; exit 1; }
  grep -q '^1000 of 1000 values are right$' $way.txt
  grep -q 'saxpy: exit 0, 1 image loaded, 0 of them without PTX, 1 different text$' $way.txt
  grep -q "^$way/0001.ptx: 1 x cuModuleLoad.*critical findings*: saxpy find_matches" $way.txt
done
grep -q cuModuleLoadFatBinary linked.txt
grep -q 'cuModuleLoadData,' looked-up.txt

# The emulator confirms the analyzer's finding on the saved text.
head -c 4096 /dev/zero >page
code=0
"$ptx_debug" run linked/0001.ptx --entry find_matches --block 32 --arg in:page --arg zero:8192 >run.txt || code=$?
cat run.txt
[ $code = 3 ] && grep -q 'misaligned address \[F051\]' run.txt && grep -q 'misaligned_cursor.cu:11' run.txt
