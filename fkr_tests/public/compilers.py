"""Compiles a case to PTX without a GPU and without a CUDA toolkit: with Triton's own compiler, and with NVRTC for CUDA C++.

The PTX is cached under the hash of all its inputs.
"""
import ast
import ctypes
import glob
import hashlib
import importlib.util
import json
import os
import pathlib
import re
import sysconfig
import warnings

import numpy as np

import cases

PACKAGES = pathlib.Path(sysconfig.get_paths()["purelib"])
VERSIONS = pathlib.Path(__file__).with_name("requirements.txt").read_text(encoding="utf-8")


class CannotCompile(Exception):
    pass


def source_of(path):
    return (PACKAGES / path).read_text(encoding="utf-8")


def compiled(launch, cache):
    """(PTX, metadata): entry, block, shared, and the order of the parameters."""
    build = triton_build(launch) if launch.compiler == "triton" else cuda_build(launch)
    text, compile_text, recipe = build
    digest = hashlib.sha256(json.dumps([VERSIONS, text, recipe, launch.target], sort_keys=True).encode()).hexdigest()[:24]
    kept = cache / f"{digest}.ptx"
    notes = cache / f"{digest}.json"
    if not notes.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        ptx, metadata = compile_text(digest, cache)
        kept.write_text(ptx, encoding="utf-8")
        part = cache / f"{digest}.{os.getpid()}"
        part.write_text(json.dumps(metadata), encoding="utf-8")
        part.replace(notes)  # the complete file, and last
    return kept, json.loads(notes.read_text(encoding="utf-8"))


# Triton

def is_jit(node):
    return isinstance(node, ast.FunctionDef) and any("triton.jit" in ast.unparse(d) or ast.unparse(d) == "jit"
                                                     for d in node.decorator_list)


def is_constant_function(node):
    return isinstance(node, ast.FunctionDef) and any(ast.unparse(d).split(".")[-1] in ("constexpr", "constexpr_function")
                                                     for d in node.decorator_list)


def is_constant(node):
    if isinstance(node, ast.AnnAssign):
        return node.value is not None and "constexpr" in ast.unparse(node)
    if isinstance(node, ast.Assign):
        text = ast.unparse(node.value)
        try:
            ast.literal_eval(node.value)
            return True
        except ValueError:
            return text.startswith(("tl.constexpr(", "triton.language.constexpr("))
    return False


def kernels_of(path):
    """The jitted functions and the constants of a module, without those that need torch. Tuning decorators are dropped."""
    text = source_of(path)
    lines = text.splitlines()
    pieces = []
    for node in ast.parse(text).body:
        definition = "\n".join(lines[node.lineno - 1:node.end_lineno]).replace(": torch.Tensor,", ",")
        if is_jit(node):
            pieces.append("@triton.jit\n" + definition)
        elif is_constant_function(node):
            pieces.append("\n".join(f"@{ast.unparse(d)}" for d in node.decorator_list) + "\n" + definition)
        elif is_constant(node):
            pieces.append(ast.unparse(node))
        elif isinstance(node, ast.FunctionDef) and node.name == "unwrap_if_constexpr":
            pieces.append(definition)
        elif isinstance(node, ast.ClassDef) and [ast.unparse(b) for b in node.bases] == ["Enum"]:
            pieces.append(definition)
    return "\n\n\n".join(pieces)


TRITON_HEAD = """import math
import types
from enum import Enum
import triton
import triton.language as tl
from triton.language.extra import libdevice


# Limits of types, of which modules make constants.
def greatest(value, least=None):
    return types.SimpleNamespace(max=value, min=-value if least is None else least)


torch = types.SimpleNamespace(
    float16="f16", bfloat16="bf16", float32="f32", float64="f64", int8="8", int16="16", int32="32", int64="64",
    finfo={"f16": greatest(65504.0), "bf16": greatest(3.3895313892515355e38), "f32": greatest(3.4028234663852886e38),
           "f64": greatest(1.7976931348623157e308)}.get,
    iinfo={str(n): greatest((1 << n - 1) - 1, -1 << n - 1) for n in (8, 16, 32, 64)}.get)


"""

# by default Triton takes the newest version that its own ptxas knows, which present drivers do not accept
PTX_VERSION = 87

POINTERS = {"float32": "*fp32", "float16": "*fp16", "float64": "*fp64", "int8": "*i8", "int16": "*i16", "int32": "*i32",
            "int64": "*i64", "uint8": "*u8", "uint16": "*u16", "uint32": "*u32", "uint64": "*u64", "bool": "*i1"}
SCALARS = {np.int32: "i32", np.int64: "i64", np.uint32: "u32", np.uint64: "u64", np.float32: "fp32", np.float64: "fp64"}


def triton_type(value):
    if isinstance(value, cases.Buffer):
        return "*" + value.kind if value.kind else POINTERS[value.bits.dtype.name]
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, int):
        return "i32"
    if isinstance(value, float):
        return "fp32"
    return SCALARS[type(value)]


def divisible(value):
    """What Triton's runtime tells its compiler: which pointers and integers are multiples of 16."""
    return isinstance(value, cases.Buffer) or (isinstance(value, (int, np.integer)) and not isinstance(value, bool)
                                               and int(value) % 16 == 0)


def triton_build(launch):
    text = "\n\n\n".join([TRITON_HEAD + launch.prelude] + [kernels_of(path) for path in (*launch.needs, launch.case.file)])
    for alias in launch.aliases:
        text = text.replace(f"{alias}.", "")
    constants = dict(launch.constants)
    for name, value in launch.arguments.items():
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and value == 1):
            constants[name] = value
    recipe = [launch.case.kernel, {n: str(v) for n, v in constants.items()},
              {n: [triton_type(v), bool(divisible(v))] for n, v in launch.arguments.items() if n not in constants},
              launch.warps, launch.stages, launch.fusion, PTX_VERSION]

    def compile_text(digest, folder):
        os.environ.setdefault("TRITON_CACHE_DIR", str(folder / "triton"))
        os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "0")
        import triton
        warnings.simplefilter("ignore")
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource
        module_file = folder / f"kernels_{digest}.py"
        module_file.write_text(text + "\n", encoding="utf-8")
        spec = importlib.util.spec_from_file_location(f"kernels_{digest}", module_file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        function = getattr(module, launch.case.kernel)
        unknown = set(launch.arguments) | set(constants)
        unknown -= set(function.arg_names)
        missing = set(function.arg_names) - set(launch.arguments) - set(constants)
        if unknown or missing:
            raise CannotCompile(f"parameters that {launch.case.kernel} has not: {sorted(unknown)}; without a value: {sorted(missing)}")
        constants.update({n: getattr(triton.language, v[3:]) for n, v in constants.items() if isinstance(v, str) and v.startswith("tl.")})
        signature = {name: "constexpr" if name in constants else triton_type(launch.arguments[name])
                     for name in function.arg_names}
        hints = {(function.arg_names.index(name),): [["tt.divisibility", 16]]
                 for name, value in launch.arguments.items() if name not in constants and divisible(value)}
        try:
            made = triton.compile(ASTSource(function, signature, constexprs=constants, attrs=hints),
                                  target=GPUTarget("cuda", launch.target, 32),
                                  options={"num_warps": launch.warps, "num_stages": launch.stages, "ptx_version": PTX_VERSION,
                                           "enable_fp_fusion": launch.fusion})
        except Exception as error:  # Triton raises many kinds
            while error.__cause__:
                error = error.__cause__
            raise CannotCompile(f"{type(error).__name__}: {str(error)[-2000:]}") from None
        ptx = made.asm["ptx"]
        threads = re.search(r"\.(?:req|max)ntid (\d+)", ptx)
        extra = len(re.findall(r"\.param", re.search(r"\.entry[^{]*", ptx).group(0)))
        order = [name for name in function.arg_names if name not in constants]
        return ptx, {"entry": made.metadata.name, "block": [int(threads.group(1)), 1, 1], "shared": made.metadata.shared,
                     "order": order, "hidden": extra - len(order), "scratch": made.metadata.global_scratch_size}
    return text, compile_text, recipe


# CUDA C++

def functions_of(text, names):
    """Definitions of functions by name, with the lines before them: template heads, attributes, macros."""
    pieces = []
    for name in names:
        found = re.search(rf"(?:^|(?<=[;}}\n]))[ \t]*(?:template\s*<[^{{;]*?>\s*)?(?:extern\s+\"C\"\s+)?[\w\s:<>,&*()]*?\b{name}\s*\([^;{{]*?\)\s*\{{",
                          text, re.MULTILINE)
        if not found:
            raise CannotCompile(f"no function {name}")
        depth, position = 0, found.end() - 1
        while True:
            depth += {"{": 1, "}": -1}.get(text[position], 0)
            position += 1
            if depth == 0:
                break
        pieces.append(text[found.start():position])
    return "\n".join(pieces)


def cuda_build(launch):
    pieces = [launch.prelude] + [source_of(path) for path in launch.needs]
    body = source_of(launch.case.file)
    if launch.until:
        body = body[:body.rindex(launch.until)]
    pieces += [functions_of(body, launch.only) if launch.only else body, launch.tail]
    text = "\n".join(pieces)
    for old, new in launch.replace:
        if old not in text:
            raise CannotCompile(f"{launch.case.file} no longer holds: {old}")
        text = text.replace(old, new)
    recipe = [launch.case.kernel, list(launch.options), launch.headers]

    def compile_text(digest, folder):
        ptx, entry = nvrtc(text, launch)
        return ptx, {"entry": entry, "order": None, "hidden": 0}
    return text, compile_text, recipe


def nvrtc(text, launch):
    library = ctypes.CDLL(glob.glob(str(PACKAGES / "nvidia/cuda_nvrtc/lib/libnvrtc.so.*"))[0])
    def check(status, what):
        if status:
            library.nvrtcGetErrorString.restype = ctypes.c_char_p
            raise CannotCompile(f"{what}: {library.nvrtcGetErrorString(status).decode()}")
    program = ctypes.c_void_p()
    names = [n.encode() for n in launch.headers]
    contents = [c.encode() for c in launch.headers.values()]
    array = ctypes.c_char_p * len(names)
    check(library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), launch.case.file.encode(), len(names),
                                     array(*contents), array(*names)), "nvrtcCreateProgram")
    expression = launch.case.kernel.encode()
    is_c = re.search(r"extern\s+\"C\"[\w\s()]*?\b" + re.escape(launch.case.kernel) + r"\s*\(", text) is not None
    if not is_c:
        check(library.nvrtcAddNameExpression(program, expression), "nvrtcAddNameExpression")
    folders = ["nvidia/cuda_runtime/include", "nvidia/cuda_cccl/include"]
    folders += [str(pathlib.Path(path).parent) for path in (launch.case.file, *launch.needs)]
    include = [f"-I{PACKAGES / folder}" for folder in folders]
    options = [f"--gpu-architecture=compute_{launch.target}{'a' if launch.target >= 90 else ''}", "--std=c++17",
               "--device-as-default-execution-space", "-w", *include, *launch.options]
    encoded = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
    status = library.nvrtcCompileProgram(program, len(options), encoded)
    if status:
        size = ctypes.c_size_t()
        library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        library.nvrtcGetProgramLog(program, log)
        raise CannotCompile(log.value.decode(errors="replace"))
    entry = ctypes.c_char_p(expression)
    if not is_c:
        check(library.nvrtcGetLoweredName(program, expression, ctypes.byref(entry)), "nvrtcGetLoweredName")
    entry = entry.value.decode()
    size = ctypes.c_size_t()
    check(library.nvrtcGetPTXSize(program, ctypes.byref(size)), "nvrtcGetPTXSize")
    ptx = ctypes.create_string_buffer(size.value)
    check(library.nvrtcGetPTX(program, ptx), "nvrtcGetPTX")
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return ptx.value.decode(), entry
