"""Compares results with the expected ones: used here, and beside replay.py on a machine with a GPU."""
import numpy as np

BITS = {"bf16": np.uint16, "fp8e4nv": np.uint8, "fp8e5": np.uint8}  # element types that NumPy does not have


def decode(kind, bits):
    """The numbers that the bits represent, as float32."""
    if kind == "bf16":
        return (np.asarray(bits, np.uint16).astype(np.uint32) << 16).view(np.float32)
    if kind in ("fp8e4nv", "fp8e5"):
        mantissa_bits, bias = (3, 7) if kind == "fp8e4nv" else (2, 15)
        bits = np.asarray(bits, np.uint8)
        sign = np.where(bits & 0x80, -1.0, 1.0)
        exponent = ((bits & 0x7F) >> mantissa_bits).astype(np.int32)
        mantissa = (bits & ((1 << mantissa_bits) - 1)) / float(1 << mantissa_bits)
        number = np.where(exponent == 0, mantissa * 2.0 ** (1 - bias), (1 + mantissa) * 2.0 ** (exponent - bias))
        if kind == "fp8e4nv":
            number = np.where((bits & 0x7F) == 0x7F, np.nan, number)
        else:
            number = np.where(exponent == 31, np.where(mantissa == 0, np.inf, np.nan), number)
        return (sign * number).astype(np.float32)
    return np.asarray(bits)


def difference(bits, before, kind, expected=None, rtol=0.0, atol=0.0, where=None):
    """(error of a returned buffer, or None; its greatest numerical error)."""
    if bits is None:
        return "was not written back", 0.0
    if expected is None:
        return (None if np.array_equal(bits.view(np.uint8), before.view(np.uint8)) else "an input was changed"), 0.0
    return of_numbers(decode(kind, bits), expected, rtol, atol, where)


def of_numbers(actual, expected, rtol, atol, where):
    actual = actual.reshape(expected.shape)
    if expected.dtype.kind in "fc":
        wide = np.complex128 if expected.dtype.kind == "c" else np.float64
        a, e = actual.astype(wide), expected.astype(wide)
        with np.errstate(all="ignore"):
            same = (a == e) | (np.isnan(a) & np.isnan(e))
            error = np.where(same, 0.0, np.abs(a - e))
            error = np.where(np.isnan(error), np.inf, error)
            allowed = atol + rtol * np.where(np.isfinite(e), np.abs(e), 0.0)
    else:
        error = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
        error = np.where((actual != expected) & (error == 0), 1.0, error)
        allowed = np.full(expected.shape, float(atol))
    if where is not None:
        error = np.where(where, error, 0.0)
    wrong = error > allowed
    if not wrong.any():
        return None, float(error.max(initial=0.0))
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    worst = tuple(int(i) for i in np.unravel_index(int(np.argmax(error)), error.shape))
    return (f"{int(wrong.sum())} of {wrong.size} elements are wrong; [{', '.join(map(str, first))}] is {actual[first]}, "
            f"expected {expected[first]}; the worst, [{', '.join(map(str, worst))}], is {actual[worst]}, expected {expected[worst]}"), 0.0
