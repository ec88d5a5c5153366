// The kernels of docs/tutorial.md, compiled. The tutorial's C++ blocks are here word for word.
#include "builder/dsl.hpp"

using namespace ptxkit::dsl;

PTXKIT_KERNEL(add_one) {
  return define(KernelSpec{.name = "add_one", .block = 128},
                [](Kernel& k, Arg<"src", Span<read_only, u32>> src, Arg<"dst", Span<global, u32>> dst) {
                  auto i = k.block() * 128 + k.thread();
                  k.if_(i < src.size(), [&] { dst.store(i, src.load(i) + 1); });
                });
}

PTXKIT_KERNEL(count_newlines) {
  return define(KernelSpec{.name = "count_newlines", .block = 128},
                [](Kernel& k, Arg<"text", Span<read_only, u8>> text, Arg<"count", Ptr<global, u32>> count) {
                  Var<u32, Rate::warp> found(k, 0);
                  k.range(k.warp() * 32, text.size(), 128, [&](auto first) {
                    auto i = first + k.lane();
                    auto byte = text.load(min(i, text.size() - 1));
                    found += popc(ballot((byte == '\n') & (i < text.size())));
                  });
                  k.once_per_warp([&] { atomic_add(count, *found, Order::relaxed, Scope::gpu); });
                });
}

PTXKIT_KERNEL(reverse_tiles) {
  return define(KernelSpec{.name = "reverse_tiles", .block = 128, .budget = {.registers = 16, .shared_bytes = 512}},
                [](Kernel& k, Arg<"data", Span<global, u32>> data) {
                  auto tile = k.shared<u32, 128, 16>("tile");
                  auto base = k.block() * 128;
                  tile.store(127 - k.thread(), data.load(base + k.thread()));
                  k.barrier();
                  data.store(base + k.thread(), tile.load(k.thread()));
                });
}

PTXKIT_KERNEL(hash_words) {
  return define(KernelSpec{.name = "hash_words", .block = 32},
                [](Kernel& k, Arg<"src", Span<read_only, u8>> src, Arg<"hashes", Span<global, u32>> hashes) {
                  auto i = k.block() * 32 + k.thread();
                  k.if_(i + 3 < src.size(), [&] {
                    auto word = src.load_unaligned_u32(i);
                    hashes.store(i, (word * 2654435761u) >> 20);
                  });
                });
}
