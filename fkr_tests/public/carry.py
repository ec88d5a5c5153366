"""Writes launches to a folder for replay.py, with their inputs, the expected results and the emulator's results."""
import json
import pathlib
import shutil

import numpy as np

import cases

HERE = pathlib.Path(__file__).resolve().parent


def value_bytes(value):
    if isinstance(value, bytes):
        return value
    if value is None:
        return bytes(8)
    kind = {bool: np.uint8, int: np.int32, float: np.float32}.get(type(value), type(value))
    return np.array(value, kind).tobytes()


class Folder:
    def __init__(self, path):
        self.path, self.launches = path, []
        path.mkdir(parents=True, exist_ok=True)
        for name in ("replay.py", "compare.py"):
            shutil.copy(HERE / name, path / name)

    def add(self, prepared, results):
        name, arrays, arguments = prepared.case.name, {}, []
        for number, argument in enumerate(prepared.arguments):
            if not isinstance(argument, cases.Buffer):
                arguments.append({"value": value_bytes(argument).hex()})
                continue
            arrays[f"before{number}"], arrays[f"emulated{number}"] = argument.bits, results[number]
            entry = {"kind": argument.kind}
            for key, wanted in argument.wanted().items():
                if key in ("expected", "where"):
                    if wanted is not None:
                        arrays[f"{key}{number}"] = wanted
                else:
                    entry[key] = wanted
            arguments.append(entry)
        np.savez_compressed(self.path / f"{name}.npz", **arrays)
        shutil.copy(prepared.ptx, self.path / f"{name}.ptx")
        self.launches.append({"name": name, "target": prepared.case.target, "entry": prepared.entry, "grid": prepared.grid,
                              "block": prepared.block, "shared": prepared.shared, "arguments": arguments,
                              "findings": sorted(prepared.launch.findings)})

    def finish(self):
        (self.path / "launches.json").write_text(json.dumps(self.launches, indent=1), encoding="utf-8")
        size = sum(p.stat().st_size for p in self.path.iterdir())
        print(f"{self.path}: {len(self.launches)} launches, {size / 1e6:.1f} MB; on the machine with the GPU: python3 {self.path.name}/replay.py")
