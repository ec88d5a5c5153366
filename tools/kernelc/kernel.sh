#!/usr/bin/env bash
# The edit cycle for one kernel: verdict, ptxas's resource usage, the PTX difference, its tests on the emulator.
# `./dev kernel NAME [--accept]` builds kernelc and ptx-debug and calls this script.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
name=${1:?usage: ./dev kernel NAME [--accept]}
action=check
[ "${2:-}" = --accept ] && action=accept

cmake --build build -- ptx/images.stamp
status=0
build/bin/kernelc $action --golden fkr_tests/golden "$name" || status=1

echo
build/bin/ptx-debug analyze --falsify "build/ptx/$name.sm_80.ptx" || status=1

echo
python3 fkr_tests/golden/ptxas_budget.py build/ptx "$name" || status=$((status > 0 ? status : $?))

echo
cmake --build build -- test_kernels_emulated
ctest --test-dir build --output-on-failure -R "^test_kernels_emulated.(KernelCosts|$(sed -E 's/(^|_)(.)/\U\2/g' <<<"$name"))" -j "$(nproc)" || status=1
exit $status
