// dst[i] = src[i] + 1. One thread takes one element; add_one_reference.hpp says the same for all of them.
#include "builder/dsl.hpp"

using namespace ptxkit::dsl;

PTXKIT_KERNEL(add_one) {
  return define(KernelSpec{.name = "add_one", .block = 128},
                [](Kernel& k, Arg<"src", Span<read_only, u32>> src, Arg<"dst", Span<global, u32>> dst) {
                  auto i = k.block() * 128 + k.thread();
                  k.if_(i < src.size(), [&] { dst.store(i, src.load(i) + 1); });
                });
}
