#!/usr/bin/env python3
"""Runs the launches of this folder through the CUDA driver and compares the results with NumPy's and the emulator's.

usage: replay.py [--libcuda FILE] [NAME...]

Needs NumPy and libcuda.so.1 only. Prints a row for each launch: its greatest error on the device and on the emulator, and
whether all compared bits are equal to the emulator's. Exit 0: every result is within its tolerance; 1: one is not; 77: there
is no device.
"""
import argparse
import ctypes
import json
import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import compare

MAX_DYNAMIC_SHARED_SIZE_BYTES, ERROR_LOG, ERROR_LOG_BYTES = 8, 5, 6
COMPUTE_MAJOR, COMPUTE_MINOR = 75, 76


class DriverError(Exception):
    pass


class Driver:
    def __init__(self, name):
        self.library = ctypes.CDLL(name)
        self.call("cuInit", 0)
        self.device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(self.device), 0)
        text = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", text, 256, self.device)
        self.name, parts = text.value.decode(), []
        for attribute in (COMPUTE_MAJOR, COMPUTE_MINOR):
            value = ctypes.c_int()
            self.call("cuDeviceGetAttribute", ctypes.byref(value), attribute, self.device)
            parts.append(value.value)
        self.capability = 10 * parts[0] + parts[1]

    def call(self, function, *arguments):
        status = getattr(self.library, function)(*arguments)
        if status:
            raise DriverError(f"{function}: error {status}")

    def run(self, ptx, launch, buffers):
        """Final bits of the buffers, by parameter. Every launch has a context of its own, so that failures do not spread."""
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device)
        try:
            self.call("cuCtxSetCurrent", context)
            return self.run_in_context(ptx, launch, buffers)
        finally:
            self.library.cuCtxSetCurrent(None)
            self.library.cuDevicePrimaryCtxRelease_v2(self.device)  # the last reference, which destroys it

    def run_in_context(self, ptx, launch, buffers):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        log = ctypes.create_string_buffer(4096)
        options, values = (ctypes.c_int * 2)(ERROR_LOG, ERROR_LOG_BYTES), (ctypes.c_void_p * 2)(ctypes.addressof(log), 4096)
        try:
            self.call("cuModuleLoadDataEx", ctypes.byref(module), ctypes.c_char_p(ptx), 2, options, values)
        except DriverError as error:
            raise DriverError(f"{error} {log.value.decode(errors='replace')}") from None
        self.call("cuModuleGetFunction", ctypes.byref(function), module, launch["entry"].encode())
        if launch["shared"] > 48 << 10:
            self.call("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED_SIZE_BYTES, launch["shared"])
        addresses, holders = {}, []
        for number, argument in enumerate(launch["arguments"]):
            if number in buffers:
                address = ctypes.c_uint64()
                self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(buffers[number].nbytes, 1)))
                self.call("cuMemcpyHtoDAsync_v2", address, buffers[number].ctypes.data_as(ctypes.c_void_p),
                          ctypes.c_size_t(buffers[number].nbytes), None)
                addresses[number] = address
                holders.append(address)
            else:
                holders.append(ctypes.create_string_buffer(bytes.fromhex(argument["value"]) or b"\0"))
        parameters = (ctypes.c_void_p * len(holders))(*[ctypes.addressof(h) for h in holders])
        self.call("cuLaunchKernel", function, *launch["grid"], *launch["block"], launch["shared"], None, parameters, None)
        self.call("cuStreamSynchronize", None)
        results = {}
        for number, address in addresses.items():
            results[number] = np.empty_like(buffers[number])
            self.call("cuMemcpyDtoHAsync_v2", results[number].ctypes.data_as(ctypes.c_void_p), address,
                      ctypes.c_size_t(results[number].nbytes), None)
        self.call("cuStreamSynchronize", None)
        return results


def judged(launch, arrays, results):
    """(error, greatest numerical error, compared bytes that differ from the emulator's, compared bytes)."""
    wrong, greatest, differing, compared = [], 0.0, 0, 0
    for number, argument in enumerate(launch["arguments"]):
        if "value" in argument:
            continue
        before, wanted = arrays[f"before{number}"], {}
        if f"expected{number}" in arrays:
            wanted = {"expected": arrays[f"expected{number}"], "rtol": argument["rtol"], "atol": argument["atol"],
                      "where": arrays.get(f"where{number}")}
        line, error = compare.difference(results[number], before, argument["kind"], **wanted)
        greatest = max(greatest, error)
        if line:
            wrong.append(f"parameter {number}: {line}")
        if wanted:
            where = wanted["where"] if wanted["where"] is not None else np.ones(wanted["expected"].shape, bool)
            element = lambda array: array.reshape(where.shape).view(f"V{array.itemsize}")
            same = element(results[number]) == element(arrays[f"emulated{number}"])
            differing, compared = differing + int((where & ~same).sum()), compared + int(where.sum())
    return wrong, greatest, differing, compared


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--libcuda", default="libcuda.so.1")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    try:
        driver = Driver(options.libcuda)
    except (OSError, DriverError) as error:
        print(f"SKIPPED: {error}")
        return 77
    launches = json.loads((HERE / "launches.json").read_text(encoding="utf-8"))
    print(f"{driver.name}, compute capability {driver.capability / 10}")
    print(f"{'kernel':58} {'device':>10} {'emulator':>10}  bits")
    count = {"right": 0, "wrong": 0, "equal": 0, "not for this device": 0}
    for launch in launches:
        if options.names and launch["name"] not in options.names:
            continue
        # From 9.0 on, the PTX is for one architecture only.
        if launch["target"] > driver.capability or (launch["target"] >= 90 and launch["target"] != driver.capability):
            print(f"{launch['name']:58} not for this device", flush=True)
            count["not for this device"] += 1
            continue
        with np.load(HERE / f"{launch['name']}.npz") as file:
            arrays = dict(file)
        buffers = {n: arrays[f"before{n}"] for n, a in enumerate(launch["arguments"]) if "value" not in a}
        emulated = {n: arrays[f"emulated{n}"] for n in buffers}
        try:
            results = driver.run((HERE / f"{launch['name']}.ptx").read_bytes() + b"\0", launch, buffers)
        except DriverError as error:
            print(f"{launch['name']:58} WRONG {error}", flush=True)
            count["wrong"] += 1
            continue
        wrong, error, differing, compared = judged(launch, arrays, results)
        bits = "not compared" if not compared else "equal" if not differing else f"{differing} of {compared} differ"
        note = f"  (its own race: {', '.join(launch['findings'])})" if launch["findings"] else ""
        print(f"{launch['name']:58} {'WRONG' if wrong else f'{error:.3g}':>10} {judged(launch, arrays, emulated)[1]:10.3g}  {bits}{note}", flush=True)
        for line in wrong:
            print(f"  {line}")
        count["wrong" if wrong else "right"] += 1
        count["equal"] += not differing
    print(", ".join(f"{n} {what}" for what, n in count.items()))
    return int(count["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
