// Addresses in shared memory: the emulator's must be the GPU's.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fkr_tests/device/device.hpp"
#include "runtime/driver/context.hpp"
#include "runtime/emulator/emulator.hpp"
#include "support/result.hpp"

namespace ptxkit::testing {
namespace {

constexpr uint32_t kWords = 64;  // of each CTA

struct LayoutCase {
  std::string name, ptx;
  uint32_t cluster = 1, dynamic_bytes = 0;
};

// Declarations, and the names whose addresses are stored.
struct Declared {
  std::string module, body;
  std::vector<std::string> names;
};

std::string kernel_text(const Declared& declared, unsigned major, uint32_t cluster = 1) {
  std::string text =
      fmt::format(".version 8.3\n.target sm_{}\n.address_size 64\n{}", major >= 9 ? 90 : 80, declared.module);
  text += fmt::format(
      ".visible .entry layout(.param .u64 out){}\n{{\n  .reg .b32 %r<4>;\n  .reg .b64 %d<4>;\n{}"
      "  ld.param.u64 %d0, [out];\n  mov.u32 %r0, %ctaid.x;\n  mul.wide.u32 %d1, %r0, {};\n  add.u64 %d0, %d0, %d1;\n",
      cluster > 1 ? fmt::format("\n.reqnctapercluster {}, 1, 1", cluster) : "", declared.body, kWords * 4);
  uint32_t at = 0;
  const auto give = [&](std::string_view what) {
    text += fmt::format("  mov.u32 %r1, {};\n  st.global.u32 [%d0+{}], %r1;\n", what, 4 * at++);
  };
  give("%total_smem_size");
  give("%dynamic_smem_size");
  if (major >= 9) give("%aggr_smem_size");
  for (const std::string& name : declared.names) give(name);
  // Of generic addresses, the distance between two, since the driver decides where the window is.
  if (declared.names.size() > 1)
    text += fmt::format(
        "  mov.u64 %d1, {};\n  cvta.shared.u64 %d1, %d1;\n  mov.u64 %d2, {};\n  cvta.shared.u64 %d2, %d2;\n"
        "  sub.u64 %d1, %d1, %d2;\n  cvt.u32.u64 %r1, %d1;\n  st.global.u32 [%d0+{}], %r1;\n",
        declared.names.front(), declared.names.back(), 4 * at++);
  return text + "  ret;\n}\n";
}

Declared random_declarations(uint32_t seed, bool has_dynamic) {
  std::mt19937 random(seed);
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  Declared out;
  for (uint32_t i = 0, count = 1 + below(6); i < count; ++i) {
    const bool is_own = below(3) == 0;
    static constexpr std::string_view kLinkages[] = {"", "", ".visible ", ".weak "};
    const std::string name = fmt::format("v{}", i);
    const std::string declaration =
        fmt::format(".shared .align {} .b8 {}[{}];\n", 1u << below(8), name, 1 + below(300));
    if (is_own)
      out.body += "  " + declaration;
    else
      out.module += std::string(kLinkages[below(4)]) + declaration;
    out.names.push_back(name);
  }
  std::shuffle(out.names.begin(), out.names.end(), random);
  if (has_dynamic) {
    out.module += fmt::format(".extern .shared .align {} .b8 dynamic[];\n", 1u << below(9));
    out.names.emplace_back("dynamic");
  }
  return out;
}

std::vector<LayoutCase> layout_cases(unsigned major) {
  std::vector<LayoutCase> all;
  for (uint32_t seed = 1; seed <= 64; ++seed) {
    const bool has_dynamic = seed % 2 == 0;
    const uint32_t cluster = major >= 9 && seed % 3 == 0 ? 2 : 1;
    all.push_back({fmt::format("seed {}", seed), kernel_text(random_declarations(seed, has_dynamic), major, cluster),
                   cluster, has_dynamic ? 16 * seed + seed % 5 : 0});
  }
  const Declared alone{".extern .shared .align 4 .b8 dynamic[];\n", "", {"dynamic"}};
  all.push_back({"dynamic memory alone", kernel_text(alone, major), 1, 40000});
  all.push_back({"nothing but what the launch asks for", kernel_text({}, major), 1, 1000});
  return all;
}

Result<std::vector<uint32_t>> on_gpu(const LayoutCase& each) {
  auto kernel = driver::Kernel::load_unverified(*device(), each.ptx, {"layout", 0, {}});
  if (!kernel) return tl::unexpected(kernel.error());
  const auto stream = driver::Stream::create(*device());
  const auto out = driver::DeviceMemory::allocate(*device(), each.cluster * kWords * 4);
  if (!stream || !out) return fail("no memory for the launch");
  const uint64_t pointer = out->handle();
  const auto bytes = std::as_bytes(std::span(&pointer, 1));
  const std::vector<std::vector<std::byte>> arguments{{bytes.begin(), bytes.end()}};
  std::vector<uint8_t> left(each.cluster * kWords * 4);
  for (const auto& step :
       {out->fill(0, *stream),
        kernel->launch_unchecked(*stream, {.grid = {each.cluster, 1, 1}, .dynamic_shared_bytes = each.dynamic_bytes},
                                 arguments),
        out->download(left, *stream), stream->wait()})
    if (!step) return tl::unexpected(step.error());
  std::vector<uint32_t> words(each.cluster * kWords);
  std::memcpy(words.data(), left.data(), left.size());
  return words;
}

Result<std::vector<uint32_t>> on_emulator(const LayoutCase& each) {
  emulator::Device emulated;
  const auto program = emulator::Program::load_text(emulated, each.ptx, "layout.ptx");
  if (!program) return tl::unexpected(program.error());
  std::vector<uint32_t> words(each.cluster * kWords);
  const auto out = emulated.allocate(words.size() * 4, "out");
  if (!out || !emulated.fill(*out, std::byte{0}, words.size() * 4)) return fail("no memory for the launch");
  const emulator::LaunchShape shape{
      .grid = {each.cluster}, .dynamic_shared_bytes = each.dynamic_bytes, .cluster = {each.cluster}};
  const auto outcome = emulator::launch(*program, "layout", shape, std::vector{emulator::Argument::of(*out)});
  if (!outcome) return tl::unexpected(outcome.error());
  if (!outcome->ok()) return fail(emulator::render(*outcome, "layout.ptx"));
  if (auto read = emulated.read(*out, std::as_writable_bytes(std::span(words))); !read)
    return tl::unexpected(read.error());
  return words;
}

TEST(DeviceLayout, AddressesInSharedMemoryAreTheDevices) {
  PTXKIT_REQUIRE_DEVICE();
  for (const LayoutCase& each : layout_cases((*device())->info().major)) {
    const auto real = on_gpu(each), emulated = on_emulator(each);
    ASSERT_TRUE(real) << each.name << ": " << real.error().message();
    ASSERT_TRUE(emulated) << each.name << ": " << emulated.error().message();
    EXPECT_EQ(*real, *emulated) << each.name << "\n" << each.ptx;
  }
}

}  // namespace
}  // namespace ptxkit::testing
