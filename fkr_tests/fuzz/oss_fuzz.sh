#!/usr/bin/env bash
# Builds every fuzz target with its seeds, as the build.sh of an OSS-Fuzz project does.
#
#   fkr_tests/fuzz/oss_fuzz.sh [TARGET...]    TARGET: analyzer, container, …; all where none is given
#
# Reads OSS-Fuzz's variables: CC, CXX, CXXFLAGS, LIB_FUZZING_ENGINE, OUT, WORK. Without them it takes clang-19 with
# AddressSanitizer, UndefinedBehaviorSanitizer and libFuzzer, and writes to build-fuzz/out: NAME_fuzz and
# NAME_fuzz_seed_corpus.zip. Needs the packages of `./dev setup`, clang-19, libclang-rt-19-dev and zip.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export CC=${CC:-clang-19} CXX=${CXX:-clang++-19}
flags=${CXXFLAGS:--O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer}
engine=${LIB_FUZZING_ENGINE:--fsanitize=fuzzer}
work=${WORK:-build-fuzz}
out=${OUT:-$work/out}

targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for source in fkr_tests/fuzz/*_fuzz.cpp; do name=${source##*/}; targets+=("${name%_fuzz.cpp}"); done
fi
cmake -S . -B "$work" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_C_FLAGS="$flags" \
  -DCMAKE_CXX_COMPILER_LAUNCHER="$(command -v ccache || true)" -DPTXKIT_LIBFUZZER=ON -DPTXKIT_FUZZING_ENGINE="$engine" \
  -DPTXKIT_HARDEN=OFF >/dev/null
# The build runs ptx-debug, whose sandbox lets LeakSanitizer start no process.
ASAN_OPTIONS=detect_leaks=0 ninja -C "$work" "${targets[@]/%/_fuzz}"

mkdir -p "$out"
for name in "${targets[@]}"; do
  cp "$work/tests/${name}_fuzz" "$out/"
  case $name in
    ptx_parser) seeds=(fkr_tests/fuzz/corpus) ;;
    analyzer|emulator) seeds=(fkr_tests/static fkr_tests/unit/runtime/emulator docs/examples) ;;
    ptz) seeds=(fkr_tests/fuzz/ptz_corpus) ;;
    *) seeds=() ;;
  esac
  rm -f "$out/${name}_fuzz_seed_corpus.zip"
  [ ${#seeds[@]} -eq 0 ] || find "${seeds[@]}" -type f -size -64k | zip -q "$out/${name}_fuzz_seed_corpus.zip" -@
done
