"""Triton's kernels of public packages with planted faults, for planted.py."""

import ast
import copy
import importlib
import importlib.machinery
import importlib.util
import pathlib
import sys
import tempfile
import time
import types

import numpy as np

HOST_PLANTS = ("input not initialised", "result one element short")


def calls(function, *names):
    return [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in names
    ]


def drop_mask(function, name):
    for call in calls(function, name):
        kept = [keyword for keyword in call.keywords if keyword.arg not in ("mask", "other")]
        if len(kept) != len(call.keywords):
            call.keywords = kept
            return True
    return False


def shift_last(function, name):
    found = calls(function, name)
    if found:
        found[-1].args[0] = ast.BinOp(found[-1].args[0], ast.Add(), ast.Constant(1))
    return bool(found)


def drop_atomic(function):
    """tl.atomic_add(p, v, mask=m) becomes a load, a sum and a store."""
    for node in ast.walk(function):
        if not isinstance(node, ast.Expr) or node.value not in calls(function, "atomic_add"):
            continue
        call = node.value
        load = ast.Call(ast.parse("tl.load", mode="eval").body, [call.args[0]], call.keywords[:])
        load.keywords = store = [each for each in call.keywords if each.arg == "mask"]
        total = ast.BinOp(copy.deepcopy(load), ast.Add(), call.args[1])
        node.value = ast.Call(ast.parse("tl.store", mode="eval").body, [call.args[0], total], store)
        return True
    return False


PLANTS = {
    "load without its mask": lambda function: drop_mask(function, "load"),
    "store without its mask": lambda function: drop_mask(function, "store"),
    "load one element on": lambda function: shift_last(function, "load"),
    "store one element on": lambda function: shift_last(function, "store"),
    "update without atomic": drop_atomic,
}


def planted(text, kernel, plant):
    """The module's text with the fault in the kernel; None where it has no place for it."""
    tree = ast.parse(text)
    function = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == kernel)
    return ast.unparse(ast.fix_missing_locations(tree)) if PLANTS[plant](function) else None


class Storage:
    def __init__(self, values):
        self.values = values

    def data_ptr(self):
        return self.values.ctypes.data

    def nbytes(self):
        return self.values.nbytes

    def cpu(self):
        return Storage(self.values.copy())

    def copy_(self, other):
        self.values[...] = other.values


class ElementType:
    """An element type that NumPy lacks."""

    def __init__(self, kind):
        self.kind, self.itemsize = kind, 2 if kind == "bf16" else 1

    def __str__(self):
        return self.kind


class HostTensor:
    """What Triton's interpreter asks of a tensor of PyTorch."""

    device = "cpu"
    is_cuda = False

    def __init__(self, storage, shape, dtype):
        self.storage, self.shape, self.dtype = storage, tuple(shape), dtype

    data = property(lambda self: self)

    def data_ptr(self):
        return self.storage.data_ptr()

    def untyped_storage(self):
        return self.storage

    def storage_offset(self):
        return 0

    def size(self):
        return self.shape

    def stride(self):
        return tuple(int(np.prod(self.shape[i + 1 :])) for i in range(len(self.shape)))

    def element_size(self):
        return self.dtype.itemsize

    def numel(self):
        return int(np.prod(self.shape))

    def is_contiguous(self):
        return True

    def new_empty(self, *_, **__):
        return HostTensor(self.storage, self.shape, self.dtype)

    def set_(self, storage, *_):
        self.storage = storage
        return self


class Runner:
    """Builds the arguments of a case, launches, and compares, for one tool."""

    def __init__(self, tool, case):
        import compare
        import compilers

        self.tool, self.case, self.launch = tool, case, case.launch()
        self.text = compilers.triton_build(self.launch)[0]
        self.compare = compare

    def plants(self):
        from cases import Buffer, In

        found = [plant for plant in PLANTS if planted(self.text, self.case.kernel, plant)]
        buffers = [value for value in self.launch.arguments.values() if isinstance(value, Buffer)]
        if any(isinstance(value, In) for value in buffers):
            found.append(HOST_PLANTS[0])
        return [*found, HOST_PLANTS[1]]

    def function(self, plant):
        text = planted(self.text, self.case.kernel, plant) if plant in PLANTS else self.text
        folder = pathlib.Path(tempfile.mkdtemp())
        file = folder / "kernels.py"
        file.write_text(text + "\n", encoding="utf-8")
        spec = importlib.util.spec_from_file_location("kernels", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return getattr(module, self.case.kernel)

    def array(self, value, is_initialised, short):
        """An argument that is a buffer, in the memory of the tool."""
        import triton
        import triton.language as tl
        from cases import Out
        from ptxkit import emulator

        bits = value.bits.reshape(-1)[: value.bits.size - short] if short else value.bits
        if self.tool != "emulator":
            held = bits.copy() if is_initialised else np.zeros_like(bits)
            return HostTensor(Storage(held), held.shape, ElementType(value.kind) if value.kind else held.dtype)
        made = emulator.empty(bits.shape, bits.dtype)
        if is_initialised and not isinstance(value, Out):
            made.copy_(bits)
        kinds = {"bf16": tl.bfloat16, "fp8e4nv": tl.float8e4nv, "fp8e5": tl.float8e5}
        return triton.reinterpret(made, kinds[value.kind]) if value.kind else made

    def bits(self, made, value):
        made = getattr(made, "base", made)
        found = made.numpy() if self.tool == "emulator" else made.storage.values
        whole = value.bits.copy()
        whole.reshape(-1)[: found.size] = found.reshape(-1)
        return whole

    def run(self, plant):
        import triton
        from cases import Buffer, Checked, In

        function = self.function(plant)
        buffers = {name: value for name, value in self.launch.arguments.items() if isinstance(value, Buffer)}
        inputs = [name for name, value in buffers.items() if isinstance(value, In)]
        results = [name for name, value in buffers.items() if isinstance(value, Checked)]
        made = {}
        for name, value in buffers.items():
            is_unset = plant == HOST_PLANTS[0] and name == inputs[-1]
            is_short = plant == HOST_PLANTS[1] and name == results[0]
            made[name] = self.array(value, not is_unset, int(is_short))
        constants = {
            name: getattr(triton.language, value[3:]) if isinstance(value, str) and value.startswith("tl.") else value
            for name, value in self.launch.constants.items()
        }
        arguments = {**self.launch.arguments, **made, **constants}
        arguments = {
            name: value.item() if isinstance(value, np.generic) else value for name, value in arguments.items()
        }
        ended = LAUNCHERS[self.tool](self, function, arguments)
        if ended:
            return ended
        for name, value in buffers.items():
            if name in made:
                line, _ = self.compare.difference(
                    self.bits(made[name], value), value.bits, value.kind, **value.wanted()
                )
                is_planted = (plant, name) in ((HOST_PLANTS[0], (inputs or [""])[-1]), (HOST_PLANTS[1], results[0]))
                if line and not is_planted:
                    return {"outcome": "wrong", "why": f"{name}: {line}"[:300]}
        return {"outcome": "clean"}


def on_the_emulator(runner, function, arguments):
    import ptxkit.triton
    from ptxkit import emulator

    launch, text = runner.launch, None
    with ptxkit.triton.use_emulator(sm=runner.case.target), ptxkit.triton.install() as watch:
        try:
            options = {"num_warps": launch.warps, "num_stages": launch.stages, "enable_fp_fusion": launch.fusion}
            function[launch.grid](**{**options, **arguments})
        except emulator.LaunchFaults as faults:
            text = str(faults)
        began = time.perf_counter()
        problems = [each for outcome in watch.outcomes() for each in outcome.problems("high", "likely")]
        seconds = time.perf_counter() - began
    runner.findings = {"findings": [str(each)[:300] for each in problems], "analysis_seconds": seconds}
    return {"outcome": "fault", "why": text[:400]} if text else None


def in_the_interpreter(runner, function, arguments):
    from triton.runtime.errors import InterpreterError

    try:
        function[runner.launch.grid](**arguments)
    except InterpreterError as reason:
        return {"outcome": "fault", "why": str(reason)[:300]}
    return None


def with_triton_viz(runner, function, arguments):
    """Its sanitizer, which computes no results."""
    import triton_viz
    from triton_viz.clients import Sanitizer

    traced = triton_viz.trace(client=Sanitizer(abort_on_error=True))(function)
    try:
        traced[runner.launch.grid](**arguments)
    except SystemExit:
        return {"outcome": "fault", "why": "the sanitizer ended the program"}
    return {"outcome": "clean"}


def stand_in_for_torch():
    """A module with which triton-viz can be imported; it asks of tensors what HostTensor has."""
    module = types.ModuleType("torch")
    module.Tensor = HostTensor
    module.__spec__ = importlib.machinery.ModuleSpec("torch", None)
    sys.modules["torch"] = module


LAUNCHERS = {"emulator": on_the_emulator, "interpreter": in_the_interpreter, "triton-viz": with_triton_viz}


def all_cases(tool, packages):
    """(name, plants, run) of every case; run(plant) is called in a process of its own."""
    import compilers

    if tool == "triton-viz":
        stand_in_for_torch()
        importlib.import_module("triton_viz")
    import triton.backends.nvidia.compiler as backend

    if tool == "emulator":
        backend.get_ptxas_version(90)  # what is imported and asked here, the processes of the runs need not
        importlib.import_module("ptxkit.triton")
    compilers.PACKAGES = packages

    from cases import REGISTERED

    folder = pathlib.Path(compilers.__file__).parent / "kernels"
    for file in sorted(folder.glob("*.py")):
        if "launch.triton" in file.read_text(encoding="utf-8"):
            importlib.import_module(f"kernels.{file.stem}")
    for case in REGISTERED.values():
        if case.target == 80 and case.launch().compiler == "triton" and not case.launch().findings:
            runner = Runner(tool, case)

            def run(plant, runner=runner):
                runner.findings = {}
                answer = runner.run(plant)
                return {**answer, **runner.findings}

            yield case.name, runner.plants(), run
