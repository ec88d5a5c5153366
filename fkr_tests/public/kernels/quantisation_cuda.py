"""Kernels of torchpq, optimum-quanto and nerfacc: product quantisation, packed weights and scans, in CUDA C++."""
import numpy as np

from cases import In, InOut, Out, case

TORCHPQ = "torchpq/kernels/cuda/"
QUANTO = "optimum/quanto/library/extensions/cuda/"
NERFACC = "nerfacc/cuda/csrc/"
TORCH_HEADERS = {name: "" for name in ("torch/extension.h", "torch/all.h", "c10/cuda/CUDAGuard.h", "c10/cuda/CUDAException.h",
                                       "ATen/cuda/Exceptions.h", "ATen/cuda/CUDAContext.h", "cuda.h", "iostream")}
STANDARD = "#include <cuda/std/cstdint>\n#include <cuda/std/functional>\nusing namespace cuda::std;\n"


@case("torchpq", "top32_select", file=TORCHPQ + "top32_select.cu", kernel="top32_select")
def top32_select(launch):
    """Queues of each thread in shared memory, sorted by shuffles when one is full."""
    rows, columns, k = 16, 300, 8
    x = launch.random.permutation(rows * columns).reshape(rows, columns).astype(np.float32)
    index = np.argsort(-x, axis=1)[:, :k]
    launch.cuda((2,), (256,), [In(x), Out(np.take_along_axis(x, index, 1)), Out(index), rows, columns, k],
                replace=[("_TPB_", "256"), ("_QCAP_", "4"), ("_TN_", "4")], options=["--use_fast_math"])


@case("torchpq", "get_ioa", file=TORCHPQ + "get_ioa.cu", kernel="get_ioa")
def get_ioa(launch):
    """The number of earlier labels that are equal."""
    labels = launch.integers(0, 9, 128, dtype=np.int64)
    known = np.unique(labels)
    before = np.int64([(labels[:i] == labels[i]).sum() for i in range(128)])
    launch.cuda((1,), (64,), [In(labels), In(known), Out(before), 128, len(known)], replace=[("_TPB_", "64")])


@case("torchpq", "get_write_address", file=TORCHPQ + "get_write_address.cu", kernel="get_write_address")
def get_write_address(launch):
    free = launch.random.permutation(500)[:192].astype(np.int64)
    cell, labels = launch.integers(0, 4, 192, dtype=np.int64), launch.integers(0, 4, 100, dtype=np.int64)
    rank = np.int64([(labels[:i] == labels[i]).sum() for i in range(100)])
    out = np.int64([free[cell == labels[i]][rank[i]] for i in range(100)])
    launch.cuda((2,), (64,), [In(free), In(cell), In(labels), In(rank), Out(out), 192, 100], replace=[("_TPB_", "64")])


@case("torchpq", "compute_centroids", file=TORCHPQ + "compute_centroids.cu", kernel="compute_centroids")
def compute_centroids(launch):
    """Sums of each cluster by atomics in dynamic shared memory."""
    parts, size, count, clusters = 2, 4, 200, 20
    x, labels = launch.integers(-9, 9, parts, size, count).astype(np.float32), launch.integers(0, clusters - 1, parts, count, dtype=np.int64)
    out = np.zeros((parts, size, clusters), np.float32)
    for p in range(parts):
        for c in range(clusters - 1):
            if (labels[p] == c).any():
                out[p, :, c] = x[p][:, labels[p] == c].mean(1)
    launch.cuda((parts, 2, 4), (64,), [In(x), In(labels), Out(out, rtol=1e-6), parts, count, size, clusters], shared=16 * 2 * 4,
                replace=[("typedef long long int64_t;", ""), ("int64_t", "long long"), ("_DE_", "1"), ("_DK_", "16"), ("_TPB_", "64"), ("_NITERS_", "1")])


@case("torchpq", "pq_decode", file=TORCHPQ + "pq_decode.cu", kernel="pq_decode")
def pq_decode(launch):
    parts, size, count = 3, 4, 300
    book, code = launch.normal(parts, size, 256), launch.integers(0, 256, parts, count, dtype=np.uint8)
    out = np.take_along_axis(book, code[:, None].astype(int), 2)
    launch.cuda((3, 2), (256,), [In(book), In(code), Out(out), parts, size, count], shared=2 * 1024,
                replace=[("_TM_", "1"), ("_TD_", "2"), ("_TPB_", "256")])


@case("torchpq", "min_bmm", file=TORCHPQ + "minbmm.cu", kernel="min_bmm_tn")
def min_bmm(launch):
    """Tiles of 128 by 128 by 16 through registers and shared memory, then the minimum of each column."""
    batch, rows, columns, inner = 2, 100, 90, 40
    a, b = launch.integers(-9, 9, batch, inner, rows).astype(np.float32), launch.integers(-9, 9, batch, inner, columns).astype(np.float32)
    product = np.einsum("bkm,bkn->bmn", a, b)
    launch.cuda((1, 1, batch), (256,), [
        In(a), In(b), InOut(np.full((batch, columns), np.inf, np.float32), product.min(1)),
        InOut(np.full((batch, columns), -1, np.int64), product.argmin(1)), rows, columns, inner, 1],
        needs=[TORCHPQ + "bmm_helpers.cu"], replace=[("_PM_", "1"), ("_PN_", "1"), ("__DISTANCE_FN__", "madd")], options=["--use_fast_math"])


@case("optimum-quanto", "unpack_4bit", file=QUANTO + "unpack.cu", kernel="unpack_4bit_kernel")
def unpack_4bit(launch):
    x = launch.integers(0, 256, 300, dtype=np.uint8)
    launch.cuda((2,), (256,), [In(x), Out(np.concatenate([x & 15, x >> 4])), 300], only=["unpack_4bit_kernel"])


@case("optimum-quanto", "unpack_2bit", file=QUANTO + "unpack.cu", kernel="unpack_2bit_kernel")
def unpack_2bit(launch):
    x = launch.integers(0, 256, 300, dtype=np.uint8)
    launch.cuda((2,), (256,), [In(x), Out(np.concatenate([x >> s & 3 for s in (0, 2, 4, 6)])), 300], only=["unpack_2bit_kernel"])


def marlin_order(bits):
    order = []
    for i in range(32):
        first = [16 * row + i // 4 + 8 * block for block in (0, 1)
                 for row in (2 * (i % 4), 2 * (i % 4) + 1, 2 * (i % 4 + 4), 2 * (i % 4 + 4) + 1)]
        for j in range(4):
            order += [p + 256 * j for p in first]
    within = [0, 2, 4, 6, 1, 3, 5, 7] if bits == 4 else [0, 2, 1, 3]
    return np.array(order).reshape(-1, len(within))[:, within].ravel()


@case("optimum-quanto", "marlin_repack", file=QUANTO + "marlin/gptq_marlin_repack.cu", kernel="gptq_marlin::marlin_repack_kernel<256, 4, true>")
def marlin_repack(launch):
    """4-bit weights, reordered for Marlin's product, with eight stages of cp.async; rows permuted."""
    inner, columns = 64, 128
    w, order = launch.integers(0, 16, inner, columns).astype(np.uint32), launch.random.permutation(inner).astype(np.uint32)
    shift = (4 * np.arange(8, dtype=np.uint32))
    packed = (w.reshape(inner // 8, 8, columns) << shift[:, None]).sum(1).astype(np.uint32)
    tiles = w[order].reshape(inner // 16, 16, columns // 16, 16).transpose(0, 2, 1, 3).reshape(inner // 16, -1)
    tiles = tiles.reshape(-1, 1024)[:, marlin_order(4)].reshape(tiles.shape)
    out = (tiles.reshape(inner // 16, -1, 8) << shift).sum(2).astype(np.uint32)
    launch.cuda((2,), (256,), [In(packed), In(order), Out(out), inner, columns], shared=8 * 16 * 16 * 16 + 64, headers=TORCH_HEADERS,
                prelude=STANDARD, until="}  // namespace gptq_marlin", replace=[("#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800", "#if 0")],
                tail="}\n#endif\n")


SCAN = "device::{}_scan_kernel<float, 16, 32, cuda::std::plus<float>, float*, const long long*>"


def scan(launch, counts, exclusive):
    starts, x = np.cumsum(counts) - counts, launch.integers(-9, 9, int(counts.sum())).astype(np.float32)
    rows = [x[s:s + c] for s, c in zip(starts, counts)]
    y = [np.cumsum(r) - (r if exclusive else 0) for r in rows]
    launch.cuda((1,), (16, 32), [Out(np.concatenate(y).astype(np.float32)), In(x), np.uint32(len(counts)), In(starts), In(counts), 0.0, b"\0", False],
                prelude=STANDARD, headers=TORCH_HEADERS)


@case("nerfacc", "inclusive_scan", file=NERFACC + "include/utils_scan.cuh", kernel=SCAN.format("inclusive"))
def inclusive_scan(launch):
    scan(launch, launch.integers(1, 33, 32, dtype=np.int64), False)


@case("nerfacc", "exclusive_scan", file=NERFACC + "include/utils_scan.cuh", kernel=SCAN.format("exclusive"))
def exclusive_scan(launch):
    scan(launch, launch.integers(1, 33, 32, dtype=np.int64), True)


@case("nerfacc", "lens_undistortion", file=NERFACC + "camera.cu", kernel="opencv_lens_undistortion_fisheye")
def lens_undistortion(launch):
    """Newton's method for each point."""
    uv, parameters = launch.uniform(100, 2, low=-0.5, high=0.5), launch.uniform(100, 4, low=-0.02, high=0.02)
    radius = np.sqrt((uv.astype(np.float64) ** 2).sum(1))
    theta = radius.copy()
    for _ in range(50):
        even = [theta ** (2 * i + 2) * parameters[:, i] for i in range(4)]
        value = theta * (1 + sum(even)) - radius
        theta -= value / (1 + sum((2 * i + 3) * e for i, e in enumerate(even)))
    out = uv * (np.tan(theta) / radius)[:, None]
    launch.cuda((1,), (128,), [np.int64(100), In(uv), In(parameters), 20, 1e-6, Out(out, np.float32, rtol=1e-4, atol=1e-5), Out(np.ones(100, bool))],
                needs=[NERFACC + "include/utils_camera.cuh"], only=["opencv_lens_undistortion_fisheye"],
                prelude=STANDARD + "namespace std {\nusing ::tan;\nusing ::sqrt;\nusing ::abs;\n}\n", headers=TORCH_HEADERS,
                replace=[("__global__ void opencv", "using namespace device;\n__global__ void opencv")])
