#!/usr/bin/env bash
# Runs dsl-lint over the path of a batch, which has no device-wide driver call. usage: steady_state.sh DSL_LINT BUILD
# RUNTIME
set -u
lint=$1 build=$2 runtime=$3
failures=0
# expect CODE FILE FUNCTION...
expect() {
  local code=$1 file=$2 found; shift 2
  "$lint" -p "$build" "${@/#/--steady=}" "$runtime/$file" >out 2>&1; found=$?
  [ $found = "$code" ] || { echo "expected exit $code, found $found: $file: $*"; head -c 2000 out; failures=1; }
}
says() { grep -qF -- "$1" out || { echo "expected: $1"; head -c 2000 out; failures=1; }; }
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT && cd "$work"

expect 0 codec/device/cuda_machine.cpp CudaMachine::{host,address,clear,upload,upload_parts,download,download_parts,download_rows,launch,wait}
expect 0 codec/device/kernel_backend.cpp KernelBackend::{begin_compress,begin_decompress,compress,decompress}
expect 0 driver/context.cpp Stream::{wait,wait_for,is_done} Event::{record,wait} \
  DeviceMemory::{upload,download,download_rows,fill} Kernel::{launch,launch_on}

expect 1 codec/device/cuda_machine.cpp CudaMachine::arrange
says "call of ptxkit::driver::DeviceMemory::allocate waits for the whole device, and CudaMachine::arrange is of the steady state"
expect 1 driver/context.cpp Context::free_memory_bytes; says "driver call mem_get_info waits for the whole device"
expect 2 driver/context.cpp Stream::vanish; says "no file defines Stream::vanish"
exit $failures
