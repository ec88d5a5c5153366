#!/usr/bin/env bash
# Installs the Debian packages of FOLDER on this machine, which has nothing of ptxkit, and runs the programs on the files
# beside them (tools/deb_root.sh puts them there). Needs root. For machines that are thrown away: bare roots, containers.
#
#   tools/deb_check.sh FOLDER
set -euxo pipefail
input=$(cd "${1:?usage: tools/deb_check.sh FOLDER}" && pwd)
cd "$(mktemp -d)"
export DEBIAN_FRONTEND=noninteractive
install() { apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }

# The programs, with what their packages depend on and nothing else.
install "$input"/ptxkit_*.deb
ptx-debug --version
ptx-debug analyze --falsify "$input"/lz4_decompress.sm_75.ptx | tail -1 | grep 'exit 0'
status=0; ptx-debug analyze "$input"/misaligned_cursor.ptx | tail -1 || status=$?
[ $status = 3 ]
ptx-debug run "$input"/lz4_decompress.sm_75.ptx --help >/dev/null
for codec in lz4 lzr bbw; do
  ptx-pack --codec $codec -c "$input"/LICENSE >packed
  ptx-pack -d -c packed | cmp - "$input"/LICENSE
done
ptx-pack --backend emulator -c "$input"/LICENSE | ptx-pack -d -c | cmp - "$input"/LICENSE
gzip -dc /usr/share/man/man1/ptx-debug.1.gz | grep -q '^.SH VERBS'
gzip -dc /usr/share/man/man1/ptx-pack.1.gz | grep -q '^.SH OPTIONS'
for file in bash-completion/completions/ptx-debug zsh/vendor-completions/_ptx-debug fish/vendor_completions.d/ptx-debug.fish; do
  [ -s /usr/share/$file ]
done

# The C interface, with the compiler alone.
install "$input"/libptxkit1_*.deb "$input"/libptxkit-dev_*.deb g++ cmake ninja-build pkg-config
cp -r /usr/share/doc/ptxkit/examples/c_api .
cmake -G Ninja -S c_api -B c_api/build
cmake --build c_api/build
c_api/build/page_cache
cc -o page_cache c_api/page_cache.c $(pkg-config --cflags --libs ptxkit)
./page_cache

# The libraries alone, without LLVM; then with what libptxkit-dev recommends, as the tutorial has it.
install libgtest-dev
ptx-debug new kernel-project my_kernels
mkdir harness
cat >harness/CMakeLists.txt <<'LISTS'
cmake_minimum_required(VERSION 3.25)
project(harness LANGUAGES CXX)
find_package(ptxkit REQUIRED)
find_package(ptxkit COMPONENTS builder)
if(ptxkit_builder_FOUND)
  message(FATAL_ERROR "a builder without LLVM")
endif()
LISTS
cmake -G Ninja -S harness -B harness/build
install llvm-19-dev libzstd-dev zlib1g-dev
cmake -G Ninja -S my_kernels -B my_kernels/build
cmake --build my_kernels/build
ctest --test-dir my_kernels/build --output-on-failure

if ls "$input"/ptxkit-mpi_*.deb; then
  install "$input"/ptxkit-mpi_*.deb openmpi-bin
  mpirun --quiet --allow-run-as-root --oversubscribe -n 2 ptx-pack-mpi "$input"/LICENSE -o shared.lz4
  ptx-pack -d -c shared.lz4 | cmp - "$input"/LICENSE
fi
echo "the packages work in $(. /etc/os-release; echo "$PRETTY_NAME")"
