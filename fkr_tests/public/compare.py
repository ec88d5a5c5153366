"""Results beside what is expected of them. Used where the emulator runs and, beside replay.py, on a machine with a GPU."""
import numpy as np


def difference(argument, bits, cases):
    """(what is wrong, or None; the greatest error) of a buffer whose bits came back."""
    if bits is None:
        return "was not written back", 0.0
    if not hasattr(argument, "expected"):
        same = np.array_equal(bits.view(np.uint8), argument.bits.view(np.uint8))
        return (None if same else "an input was changed"), 0.0
    return of_numbers(argument.numbers(bits), argument.expected, argument.rtol, argument.atol, argument.where)


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
