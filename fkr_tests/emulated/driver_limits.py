#!/usr/bin/env python3
"""cuCtxSetLimit and cuCtxGetLimit of the driver whose GPU is the emulator: the memory for malloc and printf.

driver_limits.py LIBEMULATEDCUDA KERNELS    KERNELS: fkr_tests/cli/ptx-debug/inputs/limits.ptx"""
import ctypes
import os
import sys
import tempfile

FIFO, HEAP, STACK = 1, 2, 0  # CUlimit
UNSUPPORTED_LIMIT = 215

cuda = ctypes.CDLL(sys.argv[1])
with open(sys.argv[2], "rb") as file:
    text = file.read() + b"\0"


def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    assert code == 0, f"{name}: error {code}"


def limit(which):
    value = ctypes.c_size_t()
    call("cuCtxGetLimit", ctypes.byref(value), which)
    return value.value


module, taken = ctypes.c_void_p(), ctypes.c_uint64()
call("cuInit", 0)
call("cuModuleLoadData", ctypes.byref(module), text)
call("cuMemAlloc_v2", ctypes.byref(taken), ctypes.c_size_t(4))


def launch(name, *arguments):
    function = ctypes.c_void_p()
    call("cuModuleGetFunction", ctypes.byref(function), module, name)
    pointers = (ctypes.c_void_p * max(1, len(arguments)))(*(ctypes.addressof(each) for each in arguments))
    call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, None, pointers, None)


def blocks_of_a_mebibyte():
    launch(b"takes", taken)
    count = ctypes.c_uint32()
    call("cuMemcpyDtoHAsync_v2", ctypes.byref(count), taken, ctypes.c_size_t(4), None)
    return count.value


def printed():
    with tempfile.TemporaryFile() as file:
        out = os.dup(1)
        os.dup2(file.fileno(), 1)
        launch(b"prints")
        ctypes.CDLL(None).fflush(None)
        os.dup2(out, 1)
        file.seek(0)
        return file.read().decode().split()


assert (limit(FIFO), limit(HEAP)) == (1 << 20, 8 << 20), "the defaults of CUDA"
assert printed() == [f"line{i}" for i in range(12)]
call("cuCtxSetLimit", FIFO, ctypes.c_size_t(21))
assert limit(FIFO) == 21 and printed() == ["line9", "line10", "line11"]
call("cuCtxSetLimit", HEAP, ctypes.c_size_t(3 << 20))
assert limit(HEAP) == 3 << 20
found = blocks_of_a_mebibyte()
assert found == 3, f"3 MiB hold 3 blocks of 1 MiB, not {found}"
assert blocks_of_a_mebibyte() == 0, "what a kernel did not free is not there for the next"
assert cuda.cuCtxSetLimit(STACK, ctypes.c_size_t(1024)) == UNSUPPORTED_LIMIT
assert cuda.cuCtxGetLimit(ctypes.byref(ctypes.c_size_t()), STACK) == UNSUPPORTED_LIMIT
print("heap and FIFO are what cuCtxSetLimit says")
