#!/usr/bin/env python3
"""Runs ZLUDA's PTX programs on the emulator and compares the results with the values that ZLUDA expects of hardware.

  spirv_run.py FOLDER PTX_DEBUG      FOLDER: a checkout's ptx/src/test/spirv_run

The programs and their values are in FOLDER/mod.rs; this repository has no copy of them. Every program is one launch of one
block with 1024 bytes of dynamic shared memory. Its parameters are the input, if it has one, and the output. Only values are
compared: programs that write past their buffers or assume alignment that is not guaranteed run without checks, as on a GPU.
Prints each failing program with the reason, then "N of M programs pass". Exit status 1 if one fails.
"""
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

FORMATS = {"u8": "B", "i8": "b", "u16": "H", "i16": "h", "u32": "I", "i32": "i", "u64": "Q", "i64": "q", "f32": "f",
           "f64": "d", "f16": "e"}


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def arguments_of(call):
    """The arguments of test_ptx!(...), split at the commas of the outermost level."""
    parts, depth, current = [], 0, ""
    for character in call:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += character
    return [part for part in parts + [current.strip()] if part]


def element(text):
    """One number of Rust: its value or bits, and its type if the text has one."""
    text = text.strip().replace("_", "") if "::" not in text else text.strip()
    constants = {"f32::NAN": float("nan"), "f32::INFINITY": float("inf"), "f32::NEG_INFINITY": float("-inf"),
                 "f32::MAX": struct.unpack("f", b"\xff\xff\x7f\x7f")[0], "i32::MIN": -2**31, "i32::MAX": 2**31 - 1,
                 "u32::MAX": 2**32 - 1, "u64::max_value()": 2**64 - 1, "std::f32::consts::PI": 3.14159265358979,
                 "std::f32::consts::PI / 2f32": 1.5707963267948966, "half::f16::NAN": float("nan"),
                 "half::f16::NEG_INFINITY": float("-inf"), "half::f16::NAN.to_bits()": 0x7e00}
    if text in constants:
        kind = "f16" if "f16" in text else "u64" if "u64" in text else "f32" if "f32" in text else text[:3]
        return constants[text], "u16" if "to_bits" in text else kind
    call = re.fullmatch(r"(?:half::)?(f16|f32|f64)::from_(bits|f32|f64)\((.*)\)", text)
    if call:
        kind, how, inner = call.groups()
        value = element(inner)[0]
        if how == "bits":
            value = struct.unpack(FORMATS[kind], struct.pack({"f16": "H", "f32": "I", "f64": "Q"}[kind], value))[0]
        return value, kind
    number = re.fullmatch(r"(-?)(0x[0-9a-fA-F]+?|0b[01]+|[0-9.]+(?:e-?[0-9]+)?)([uif](?:8|16|32|64))?", text)
    if not number:
        raise ValueError(f"cannot read '{text}'")
    sign, digits, kind = number.groups()
    value = float(digits) if re.search(r"[.]|e-?[0-9]+$", digits) and digits[:2] != "0x" else int(digits, 0)
    if kind is None and isinstance(value, float):
        kind = "f32"
    if kind and kind[0] == "f":
        value = float(value)
    return -value if sign else value, kind


def array(text):
    """[1u32, 2, 3] as bytes. All elements have the type that one of them names, or i32 if none does."""
    repeated = re.fullmatch(r"\[(.*);\s*(\d+)\]", text.strip(), re.S)
    items = [repeated.group(1)] * int(repeated.group(2)) if repeated else arguments_of(text.strip()[1:-1])
    values = [element(item) for item in items]
    kind = next((kind for _, kind in values if kind), "i32")
    return b"".join(struct.pack("<" + FORMATS[kind], value) for value, _ in values), kind


def same(got, expected, kind):
    if kind[0] != "f":
        return got == expected
    size = struct.calcsize(FORMATS[kind])
    pairs = zip(struct.iter_unpack("<" + FORMATS[kind], got), struct.iter_unpack("<" + FORMATS[kind], expected))
    return len(got) == len(expected) and len(got) % size == 0 and all(a == b for a, b in pairs)


def run(program, ptx_debug, name, given, expected, kind, threads, folder):
    command = [ptx_debug, "run", str(program), "--entry", name, "--block", str(threads), "--shared", "1024",
               "--check", "none", "--max-steps", "10000000"]
    if given is not None:
        (folder / "in").write_bytes(given)
        command += ["--arg", f"in:{folder / 'in'}"]
    command += ["--arg", f"out:{len(expected)}:{folder / 'out'}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode == 64 and given is None and "1 argument, expected 2" in done.stderr:
        command[-2:] = ["--arg", "zero:8"] + command[-2:]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode:
        return (done.stderr + done.stdout).strip().splitlines()[0]
    got = (folder / "out").read_bytes()
    if same(got, expected, kind):
        return None
    return f"expected {expected[:16].hex()}, found {got[:16].hex()}"


def main():
    source, ptx_debug = pathlib.Path(sys.argv[1]), sys.argv[2]
    text = without_comments((source / "mod.rs").read_text())
    passed, total, without_values = 0, 0, []
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        for match in re.finditer(r"^test_ptx(|_with_32|_warp)!\((.*?)\);$", text, re.S | re.M):
            flavour, parts = match.group(1), arguments_of(match.group(2))
            name = parts[0]
            if len(parts) == 1:
                without_values.append(name)
                continue
            given = None if flavour == "_warp" else array(parts[1])[0]
            expected, kind = array(parts[-1])
            programs = [source / f"{name}.ptx"] + ([source / "32" / f"{name}.ptx"] if flavour == "_with_32" else [])
            for program in programs:
                why = run(program, ptx_debug, name, given, expected, kind, 64 if flavour == "_warp" else 1, folder)
                total += 1
                passed += why is None
                if why:
                    print(f"{program.relative_to(source)}: {why}")
    print(f"{passed} of {total} programs pass; {len(without_values)} have no expected values: {' '.join(without_values)}")
    return 0 if passed == total else 1


if __name__ == "__main__":
    sys.exit(main())
