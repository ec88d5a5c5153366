"""The tables of ptxkit._c against the stored list of the C ABI; how the library is found; what an import loads."""

import ctypes
import ctypes.util
import pathlib
import re

import pytest
from ptxkit import _c, _errors, _streams

ABI = (pathlib.Path(__file__).parent.parent / "c_api" / "abi.txt").read_text(encoding="utf-8")


def stored_structures():
    found, fields = {}, None
    for line in ABI.splitlines():
        if made := re.fullmatch(r"(ptxkit_\w+) (\d+)", line):
            fields = {}
            found[made[1]] = int(made[2]), fields
        elif made := re.fullmatch(r"  (\w+) (\d+)\+(\d+)", line):
            fields[made[1]] = int(made[2]), int(made[3])
    return found


@pytest.mark.parametrize("name", _c.STRUCTURES)
def test_structures_have_the_stored_layout(name):
    size, fields = stored_structures()[name]
    made = _c._structure(name)
    assert ctypes.sizeof(made) == size
    for field, place in fields.items():
        assert (getattr(made, field).offset, getattr(made, field).size) == place, field
    assert set(fields) | {"reserved0"} >= {field for field, _ in _c.STRUCTURES[name]}


def test_functions_are_those_of_the_library():
    symbols = set(re.findall(r"symbol T (\w+)@@PTXKIT_1", ABI))
    assert symbols >= set(_c.FUNCTIONS)
    files = {"ptxkit_compress_file", "ptxkit_decompress_file"}  # open() covers them
    # The handle of a GPU lives as long as the process; page-locked memory and times are of C programs.
    others = {"ptxkit_device_destroy", "ptxkit_host_memory_create", "ptxkit_host_memory_destroy"}
    assert symbols - set(_c.FUNCTIONS) == files | others | {"ptxkit_context_device_times"}


def test_numbers_are_those_of_the_header():
    numbers = {name: int(value) for name, value in re.findall(r"PTXKIT_(\w+) = (\d+)", ABI)}
    statuses = {name: value for name, value in vars(_errors).items() if name.isupper() and isinstance(value, int)}
    assert statuses == {name: numbers[name] for name in statuses} and len(statuses) == 14
    from ptxkit import _batch, _context, debug

    assert {f"FRAMING_{name.upper()}": value for name, value in _batch.FRAMINGS.items()}.items() <= numbers.items()
    assert {f"POLICY_{name.upper()}": value for name, value in _context.POLICIES.items()}.items() <= numbers.items()
    assert [debug._VALUE, debug._IN, debug._OUT, debug._IN_OUT, debug._ADDRESS] == [
        numbers[f"ARGUMENT_{name}"] for name in ("VALUE", "IN", "OUT", "IN_OUT", "ADDRESS")
    ]
    assert [_streams.NO_CONTENT_CHECKSUM, _streams.BLOCK_CHECKSUMS, _streams.LINKED_BLOCKS] == [
        numbers[name] for name in ("NO_CONTENT_CHECKSUM", "BLOCK_CHECKSUMS", "LINKED_BLOCKS")
    ]


def test_import_loads_nothing(python):
    heavy = python("import sys; before = set(sys.modules); import ptxkit; print(sorted(set(sys.modules) - before))")
    assert not {"ctypes", "numpy", "ptxkit._c", "json", "typing", "importlib.util"} & set(eval(heavy))
    assert (
        python("import ptxkit; print(ptxkit.Codec('lz4').encode(b'x') and 'numpy' in __import__('sys').modules)")
        == "False\n"
    )


def test_a_missing_library_says_where_it_was_looked_for(python):
    program = "import ptxkit\ntry: ptxkit.codecs()\nexcept ImportError as error: " "print(type(error).__name__, error)"
    named = python(program, PTXKIT_LIBRARY="/nowhere/libptxkit.so.1")
    assert (
        named.startswith("LibraryNotFoundError") and "/nowhere/libptxkit.so.1: " in named and "$PTXKIT_LIBRARY" in named
    )
    other = python(program, PTXKIT_LIBRARY=ctypes.util.find_library("c") or "libc.so.6")
    assert "ptxkit_version" in other  # a library without the functions
    unset = python(program, PTXKIT_LIBRARY="")
    if "LibraryNotFoundError" in unset:  # it may be installed in the system
        assert "ptxkit/lib/libptxkit.so.1" in unset and "wheel" in unset
