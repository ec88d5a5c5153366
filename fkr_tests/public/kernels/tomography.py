"""Kernels of httomolibgpu, tomobar and ccpi-regularisation-cupy: tomography and regularisation, in CUDA C++."""
import numpy as np

from cases import In, InOut, Out, case

HTTOMO = "httomolibgpu/cuda_kernels/"
TOMOBAR = "tomobar/cuda_kernels/"
ROF = "ccpi/cuda_kernels/TV_ROF_GPU_kernels.cuh"
PD = "ccpi/cuda_kernels/TV_PD_GPU_kernels.cuh"


def shifted(x, axis, by):
    """Neighbours along an axis; beyond an edge the neighbour on the other side."""
    size = x.shape[axis]
    index = np.arange(size) + by
    return np.take(x, np.where((index < 0) | (index >= size), np.arange(size) - by, index), axis)


@case("httomolibgpu", "median3d", file=HTTOMO + "median_kernel.cu", kernel="median_general_kernel3d<unsigned short, 3>")
def median3d(launch):
    """27 neighbours in local memory, bubble-sorted; beyond the volume the voxel's own coordinate is used."""
    z, m, n = 4, 9, 10
    x = launch.integers(0, 5000, z, m, n, dtype=np.uint16)
    index = []
    for offset in np.ndindex(3, 3, 3):
        place = [np.arange(s)[:, None] + (o - 1) for s, o in zip((z, m, n), offset)]
        place = [np.where((p < 0) | (p >= s), np.arange(s)[:, None], p).ravel() for p, s in zip(place, (z, m, n))]
        index.append(x[np.ix_(*place)])
    launch.cuda((1, 2, 4), (16, 8, 1), [In(x), Out(np.sort(np.stack(index), 0)[13]), 0.0, z, m, n])


@case("httomolibgpu", "remove_nan_inf", file=HTTOMO + "remove_nan_inf.cu", kernel="remove_nan_inf<float>")
def remove_nan_inf(launch):
    x = launch.normal(2, 6, 20)
    x[0, 1, 3], x[1, 5, 19], x[1, 0, 0] = np.nan, np.inf, -np.inf
    launch.cuda((1, 6, 2), (32, 1, 1), [InOut(x, np.where(np.isfinite(x), x, 0)), 2, 6, 20, InOut(np.zeros(1, np.int32), np.ones(1, np.int32))])


@case("httomolibgpu", "generate_mask", file=HTTOMO + "generate_mask.cu", kernel="generate_mask_full")
def generate_mask(launch):
    columns, rows = 50, 30
    place = np.ceil(np.float32((np.arange(rows) - 15) * np.float32(0.5) / np.float32(2.0)) / np.float32(0.25)).astype(int)
    low, high = np.sort(np.stack([25 - place, 25 + place]), 0)
    low, high = np.clip(low, 0, None), np.clip(high, None, columns - 1)
    i, j = np.arange(columns), np.arange(rows)[:, None]
    mask = (low[:, None] <= i) & (i <= high[:, None]) & ~((j >= 13) & (j <= 17)) & ~((i >= 24) & (i <= 26))
    launch.cuda((1, rows), (64,), [columns, rows, 25, 15, 0.25, 0.5, 2.0, 2.0, Out(mask.astype(np.float32))])


@case("httomolibgpu", "calc_metrics", file=HTTOMO + "calc_metrics.cu", kernel="calc_metrics_kernel<true, true>")
def calc_metrics(launch):
    """Correlation of overlapping windows: block sums by trees in shared memory. Late warps read the leaves of the next tree,
    so that the result is undefined: only the findings are compared."""
    launch.finds("F036", "no barrier stands between reading a sum and storing the leaves of the next")
    launch.finds("F050", "the same within a warp")
    rows, width, positions, window = 37, 60, 5, 20
    a, b = launch.uniform(rows, width, low=0.2), launch.uniform(rows, width, low=0.2)
    launch.cuda((1, positions), (128,), [In(a), width, In(b), width, window, rows, 0,
                                           InOut(np.zeros(positions, np.float32), np.zeros(positions), where=False)],
                shared=6 * 128 * 4)


@case("httomolibgpu", "grouped_convolution", file=HTTOMO + "remove_stripe_fw.cu", kernel="grouped_convolution_x<5>")
def grouped_convolution(launch):
    x, w = launch.normal(3, 4, 44), launch.normal(2, 5)
    windows = np.lib.stride_tricks.sliding_window_view(x, 5, 2)[:, :, ::2]
    launch.cuda((1, 4, 3), (32, 1, 1), [20, 4, 3, In(x), 2, 44, 176, Out(np.einsum("zyxk,gk->zgyx", windows, w), rtol=1e-4, atol=1e-5), 160, 80, In(w)])


@case("httomolibgpu", "transposed_convolution", file=HTTOMO + "remove_stripe_fw.cu", kernel="transposed_convolution_x<5>")
def transposed_convolution(launch):
    x, w = launch.normal(2, 3, 20), launch.normal(5)
    out = np.zeros((2, 3, 43), np.float32)
    for i in range(5):
        out[:, :, i:i + 40:2] += x * w[i]
    launch.cuda((1, 3, 2), (64, 1, 1), [43, 3, 2, In(x), 20, 20, 60, In(w), Out(out, rtol=1e-5, atol=1e-6)])


def rof_differences(u, axes):
    """Normalised differences of Rudin, Osher and Fatemi's model, for each axis."""
    ahead = [shifted(u, a, 1) - u for a in axes]
    behind = [u - shifted(u, a, -1) for a in axes]
    limited = [(0.5 * (np.sign(p) + np.sign(m)) * np.minimum(np.abs(p), np.abs(m))) ** 2 for p, m in zip(ahead, behind)]
    return [d / np.sqrt(d * d + sum(limited[j] for j in range(len(axes)) if j != i) + 1e-8) for i, d in enumerate(ahead)]


@case("tomobar", "divergence_2d", file=TOMOBAR + "rudin_osher_fatemi_total_variation.cu", kernel="divergence_kernel_2D<__half>")
def divergence_2d(launch):
    u = launch.normal(13, 21)
    first, second = rof_differences(u.astype(np.float64), (0, 1))
    launch.cuda((1, 2), (32, 8), [In(u), Out(first, np.float16, atol=1e-3), Out(second, np.float16, atol=1e-3), 21, 13])


@case("tomobar", "divergence_3d", file=TOMOBAR + "rudin_osher_fatemi_total_variation.cu", kernel="divergence_kernel_3D<float>")
def divergence_3d(launch):
    u = launch.normal(5, 6, 20)
    found = rof_differences(u.astype(np.float64), (1, 2, 0))
    launch.cuda((1, 2, 5), (32, 4, 1), [In(u), *(Out(d, np.float32, rtol=1e-4, atol=1e-5) for d in found), 20, 6, 5])


@case("tomobar", "tv_step_3d", file=TOMOBAR + "rudin_osher_fatemi_total_variation.cu", kernel="TV_kernel3D<float>")
def tv_step_3d(launch):
    u, x, d1, d2, d3 = (launch.normal(5, 6, 20) for _ in range(5))
    back = sum(d - shifted(d, a, -1) for d, a in ((d1, 1), (d2, 2), (d3, 0)))
    y = u + np.float32(0.01) * (np.float32(0.5) * back - (u - x))
    launch.cuda((1, 2, 5), (32, 4, 1), [In(u), Out(y, rtol=1e-5, atol=1e-6), In(x), In(d1), In(d2), In(d3), 0.5, 0.01, 20, 6, 5])


@case("tomobar", "primal_dual_3d", file=TOMOBAR + "primal_dual_for_total_variation.cu", kernel="primal_dual_for_total_variation_3D<float, true, false>")
def primal_dual_3d(launch):
    sigma, tau, lt, theta = 0.3, 0.1, 0.05, 1.0
    x, u, *p = (launch.normal(4, 6, 20) for _ in range(5))
    axes = (2, 1, 0)
    new = [q + sigma * (shifted(u, a, 1) - u) for q, a in zip(p, axes)]
    norm = np.maximum(sum(q * q for q in new), 1)
    new = [q / np.sqrt(norm) for q in new]
    previous = [np.where(np.arange(q.shape[a]).reshape([-1 if i == a else 1 for i in range(3)]) > 0, np.roll(q, 1, a), 0)
                for q, a in zip(new, axes)]
    divergence = sum(b - q for q, b in zip(new, previous))
    inner = np.maximum(u, 0)
    step = (inner - tau * divergence + lt * x) / (1 + lt)
    out = [np.float32(step + theta * (step - inner))] + [np.float32(q) for q in new]
    made = [Out(o, rtol=1e-4, atol=1e-5) for o in out]
    launch.cuda((1, 2, 4), (32, 4, 1), [In(x), In(u), made[0], *(In(q) for q in p), *made[1:], sigma, tau, lt, theta, 20, 6, 4])


@case("tomobar", "generate_filtersinc", file=TOMOBAR + "generate_filtersync.cu", kernel="generate_filtersinc")
def generate_filtersinc(launch):
    """One warp of 30 threads, so that the trees of sums are ragged. With more warps the result depends on their order."""
    launch.finds("F050", "the second sum is stored where other lanes may not have read the first one yet")
    a, n, multiplier = 1.1, 300, 2.5
    w = -np.pi + np.arange(n) * 2 * np.pi / n
    rd = a * w / 2
    r = np.abs(2 / a * np.sin(rd)) * ((np.sin(rd) * rd).sum() / (rd * rd).sum()) ** 2 * multiplier
    out = np.empty(n)
    out[(np.arange(n) + n // 2) % n] = r
    launch.cuda((1,), (30,), [a, Out(out[:n // 2 + 1], np.float32, rtol=1e-3, atol=1e-5), n, multiplier], shared=120)


@case("tomobar", "c2dfftshift", file=TOMOBAR + "fft_us_kernels.cu", kernel="c2dfftshift")
def c2dfftshift(launch):
    x = launch.normal(2, 10, 10, 2)
    sign = (-1.0) ** (np.arange(10)[:, None] + np.arange(10))
    launch.cuda((1, 2, 2), (16, 8, 1), [InOut(x, x * sign[..., None].astype(np.float32)), 5, 2])


@case("tomobar", "gather", file=TOMOBAR + "fft_us_kernels.cu", kernel="gather_kernel")
def gather(launch):
    """Samples of a polar grid, spread over a Cartesian one by atomic additions to both halves of a float2."""
    m, mu, n, projections = 2, 0.02, 8, 5
    g, theta = launch.normal(1, projections, n, 2), launch.uniform(projections, low=0.1, high=1.4)
    f = np.zeros((1, 2 * n, 2 * n, 2))
    t = (np.arange(n) - n // 2) / n
    for p in range(projections):
        for x in range(n):
            x0, y0 = t[x] * np.cos(np.float64(theta[p])), -t[x] * np.sin(np.float64(theta[p]))
            x0, y0 = (0.5 - 1e-5 if v >= 0.5 else v for v in (x0, y0))
            for l1 in int(np.floor(2 * n * y0)) - m + np.arange(2 * m + 1):
                for l0 in int(np.floor(2 * n * x0)) - m + np.arange(2 * m + 1):
                    w = np.pi / mu * np.exp(-np.pi ** 2 / mu * ((l0 / (2 * n) - x0) ** 2 + (l1 / (2 * n) - y0) ** 2))
                    f[0, (l1 + n) % (2 * n), (l0 + n) % (2 * n)] += w * g[0, p, x]
    launch.cuda((1, 2, 1), (8, 4, 1), [In(g), InOut(np.zeros(f.shape, np.float32), f, rtol=1e-2, atol=0.05), In(theta), m, mu, n, projections, 1])


@case("ccpi-regularisation", "rof_differences", file=ROF, kernel="D1_func2D")
def d1_func2d(launch):
    u = launch.normal(14, 20)
    launch.cuda((2, 2), (16, 8), [In(u), Out(rof_differences(u.astype(np.float64), (0, 1))[0], np.float32, rtol=1e-4, atol=1e-5), 20, 14])


@case("ccpi-regularisation", "rof_step", file=ROF, kernel="TV_kernel2D")
def tv_kernel2d(launch):
    d1, d2, u, x = (launch.normal(14, 20) for _ in range(4))
    y = u + 0.02 * (0.7 * ((d1 - shifted(d1, 0, -1)) + (d2 - shifted(d2, 1, -1))) - (u - x))
    launch.cuda((2, 2), (16, 8), [In(d1), In(d2), InOut(u, y.astype(np.float32), rtol=1e-5, atol=1e-6), In(x), 0.7, 0.02, 20, 14])


@case("ccpi-regularisation", "pd_projection", file=PD, kernel="Proj_funcPD2D_iso_kernel")
def pd_projection(launch):
    """The second quotient uses the result of the first: both read P1 again."""
    p, q = launch.normal(14, 20), launch.normal(14, 20)
    norm = np.sqrt(np.maximum(p * p + q * q, 1))
    launch.cuda((2, 2), (16, 8), [InOut(p, p / norm, rtol=1e-5), InOut(q, q / norm, rtol=1e-5), 20, 14])


@case("ccpi-regularisation", "pd_divergence", file=PD, kernel="DivProj2D_kernel")
def pd_divergence(launch):
    u, x, p, q = (launch.normal(14, 20) for _ in range(4))
    divergence = -(p - np.pad(p, ((0, 0), (1, 0)))[:, :-1]) - (q - np.pad(q, ((1, 0), (0, 0)))[:-1])
    launch.cuda((2, 2), (16, 8), [InOut(u, ((u - 0.3 * divergence + 0.2 * x) / 1.2).astype(np.float32), rtol=1e-5, atol=1e-6), In(x), In(p),
                                  In(q), 0.2, 0.3, 20, 14])
