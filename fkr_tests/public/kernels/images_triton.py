"""Kernels of bm3d-triton and lanczos-triton: image filters, in Triton."""
import numpy as np

from cases import In, InOut, Out, case

BM3D = "bm3d_triton/_backend.py"
LANCZOS = "lanczos_triton/_kernels.py"


def lanczos_table(size, out, a=3):
    """Weights and first taps of one axis, antialiased."""
    scale = max(size / out, 1.0)
    taps = min(size, int(np.ceil(2 * a * scale)))
    place = (np.arange(out) + 0.5) * size / out - 0.5
    base = (2 * np.arange(out) + 1) * size // (2 * out)
    fraction = (2 * np.arange(out) + 1) * size % (2 * out) / (2 * out) - 0.5
    start = np.clip(base + np.floor(fraction - a * scale).astype(int) + 1, 0, size - taps)
    d = (start + np.arange(taps)[:, None] - place) / scale
    weights = np.where(np.abs(d) < a, np.sinc(d) * np.sinc(d / a), 0)
    return (weights / weights.sum(0)).astype(np.float32), start.astype(np.int32), taps, scale


@case("lanczos-triton", "weights", file=LANCZOS, kernel="weights")
def weights(launch):
    table, start, taps, scale = lanczos_table(40, 25)
    launch.triton((1,), {"W": Out(table, atol=1e-5), "Starts": Out(start)},
                  {"IN": 40, "OUT": 25, "A": 3, "SCALE": scale, "TAPS": taps, "K": 16, "D": 32})


@case("lanczos-triton", "horizontal", file=LANCZOS, kernel="horizontal")
def horizontal(launch):
    x = launch.uniform(10, 40)
    table, start, taps, _ = lanczos_table(40, 25)
    y = (x[:, start + np.arange(taps)[:, None]] * table).sum(1)
    launch.triton((3,), {"X": In(x), "Y": Out(y, atol=1e-5), "W": In(table), "Starts": In(start)},
                  {"IW": 40, "OW": 25, "ROWS": 10, "TAPS": taps, "B": 64, "R": 4})


@case("lanczos-triton", "vertical_wide", file=LANCZOS, kernel="vertical_wide")
def vertical_wide(launch):
    planes, height, width, out = 2, 90, 13, 7
    x = launch.uniform(planes, height, width)
    table, start, taps, _ = lanczos_table(height, out)
    y = np.einsum("kopw,ko->pow", x.transpose(1, 0, 2)[start + np.arange(taps)[:, None]], table)
    launch.triton((-(-planes * out * width // 16),), {"X": In(x), "Y": Out(y, np.float32, atol=1e-5), "W": In(table), "Starts": In(start)},
                  {"IH": height, "OH": out, "WIDTH": width, "TOTAL": planes * out * width, "TAPS": taps, "B": 16, "K": 32})


def block_match(image, limit, most):
    """Positions of the most similar 8 by 8 patches, and their number, reduced to a power of two."""
    height, width = image.shape
    columns, rows = -(-(width - 8) // 3) + 1, -(-(height - 8) // 3) + 1
    patches = np.lib.stride_tricks.sliding_window_view(image, (8, 8)).reshape(height - 7, width - 7, 64).astype(np.float64)
    places, counts = [], []
    for group in range(rows * columns):
        y, x = min(group // columns * 3, height - 8), min(group % columns * 3, width - 8)
        found = []
        for c in range(1521):
            v, u = y + c // 39 - 19, x + c % 39 - 19
            if c != 760 and 0 <= v <= height - 8 and 0 <= u <= width - 8:
                distance = ((patches[y, x] - patches[v, u]) ** 2).sum()
                if distance < limit:
                    found.append((distance, c, v * width + u))
        chosen = [place for _, _, place in sorted(found)[:most - 1]]
        places.append([y * width + x] + chosen + [y * width + x] * (most - 1 - len(chosen)))
        counts.append(1 << (len(chosen) + 1).bit_length() - 1)
    return np.int32(places), np.int32(counts), columns


@case("bm3d-triton", "match", file=BM3D, kernel="_match")
def match(launch):
    image, limit = launch.uniform(14, 17), 8.0
    places, counts, columns = block_match(image, limit, 16)
    launch.triton((6,), {"Image": In(image), "Locations": Out(places[6:12]), "Counts": Out(counts[6:12]), "START": 6},
                  {"H": 14, "W": 17, "NX": columns, "K": 16, "LIMIT": limit})


@case("bm3d-triton", "filter", file=BM3D, kernel="_filter")
def bm3d_filter(launch):
    """Stacks of patches: cosine transform, Hadamard transform, threshold, and the inverses, summed by atomics."""
    image, variance, most = launch.uniform(14, 17), 0.02, 4
    places, counts, _ = block_match(image, 12.0, most)
    window = launch.uniform(64, low=0.1)
    k = np.arange(8)
    cosine = np.cos(np.pi / 8 * (k + 0.5) * k[:, None]) * np.where(k[:, None] == 0, np.sqrt(1 / 8), 0.5)
    numerator, denominator = np.zeros(image.size), np.zeros(image.size)
    offset = (k[:, None] * 17 + k).ravel()
    for place, count in zip(places, counts):
        stack = image.ravel()[place[:count, None] + offset].reshape(count, 8, 8).astype(np.float64)
        matrix = np.ones((1, 1))
        while len(matrix) < count:
            matrix = np.block([[matrix, matrix], [matrix, -matrix]])
        spectrum = np.einsum("st,tij->sij", matrix, cosine @ stack @ cosine.T)
        keep = np.abs(spectrum) >= 2.7 * np.sqrt(count * variance)
        weight = 1 / max(keep.sum(), 1)
        values = cosine.T @ (np.einsum("st,tij->sij", matrix, np.where(keep, spectrum, 0)) / count) @ cosine
        np.add.at(numerator, place[:count, None] + offset, weight * window * values.reshape(count, 64))
        np.add.at(denominator, place[:count, None] + offset, np.broadcast_to(weight * window, (count, 64)))
    zeros = np.zeros(image.size, np.float32)
    launch.triton((len(places),), {
        "Noisy": In(image), "Basic": In(image), "Locations": In(places), "Counts": In(counts), "Window": In(window),
        "Numerator": InOut(zeros, numerator, rtol=1e-3, atol=1e-4), "Denominator": InOut(zeros, denominator, rtol=1e-4, atol=1e-5),
        "VAR": variance}, {"W": 17, "K": most, "WIENER": False})
