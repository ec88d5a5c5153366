// The kernel that tests of tcgen05.mma share, and the initial memory of its CTAs.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "fkr_tests/unit/runtime/emulator/kernel.hpp"

namespace ptxkit::emulator {

inline constexpr unsigned kTileWords = 2304, kColumns = 64, kCtaWords = kTileWords + 128 * kColumns;
// Columns after the 64 of D; each lane has 64 words of its own there.
inline constexpr unsigned kA = 0, kMetadata = 16, kFactorsA = 24, kFactorsB = 32;

// The initial memory of one CTA.
struct Operands {
  std::vector<uint32_t> words = std::vector<uint32_t>(kCtaWords);

  void set(unsigned bit, unsigned bits, uint32_t value) {
    for (unsigned i = 0; i < bits; ++i) words[(bit + i) / 32] |= (value >> i & 1) << (bit + i) % 32;
  }
  // Atoms of 8 rows of 16 bytes; the next 16 bytes along K are `rows` * 16 bytes further. 16 elements of 4 and 6 bits
  // take such a row; `packed` ones have no gaps.
  void in_shared(unsigned begin, unsigned rows, unsigned row, unsigned k, unsigned bits, bool packed, uint32_t value) {
    const unsigned at = bits < 8 && !packed ? k / 16 * 128 + k % 16 * bits : k * bits;
    set((begin + row / 8 * 128 + row % 8 * 16 + at / 128 * rows * 16) * 8 + at % 128, bits, value);
  }
  void in_column(unsigned lane, unsigned column, unsigned bit, unsigned bits, uint32_t value) {
    set((kTileWords + lane * kColumns + column) * 32 + bit, bits, value);
  }
};

// %r1 is the address of D's 64 columns and the 64 after them, %r20 the warp, %r21 its first lane, %p2 thread 0 of the
// first CTA, which issues the product.
inline std::string kernel_text(bool pair, const std::string& multiply, const std::string& before = "") {
  const std::string group = fmt::format("cta_group::{}", pair ? 2 : 1);
  const std::string meet = pair ? "  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n" : "";
  std::string list, from, to;
  for (unsigned i = 0; i < 32; ++i) {
    list += fmt::format("{}%v{}", i ? ", " : "", i);
    from += fmt::format("  ld.global.u32 %v{0}, [%rd7+{1}];\n", i, 4 * i);
    to += fmt::format("  st.global.u32 [%rd7+{1}], %v{0};\n", i, 4 * i);
  }
  std::string fill, give;
  for (unsigned half = 0; half < 2; ++half) {
    fill += fmt::format("  add.u64 %rd7, %rd6, {};\n{}  tcgen05.st.sync.aligned.32x32b.x32.b32 [%r5+{}], {{{}}};\n",
                        128 * half, from, 64 + 32 * half, list);
    give += fmt::format(
        "  tcgen05.ld.sync.aligned.32x32b.x32.b32 {{{}}}, [%r5+{}];\n  tcgen05.wait::ld.sync.aligned;\n"
        "  add.u64 %rd7, %rd8, {};\n{}",
        list, 32 * half, 128 * half, to);
  }
  const std::string text = entry_text(
      "  mov.u32 %r22, %ctaid.x;\n  shr.u32 %r20, %r0, 5;\n  shl.b32 %r21, %r20, 21;\n  setp.ne.u32 %p1, %r20, 0;\n"
      "  setp.eq.u32 %p3, %r0, 0;\n  setp.eq.and.u32 %p2, %r22, 0, %p3;\n  @%p1 bra allocated;\n"
      "  tcgen05.alloc." +
          group +
          ".sync.aligned.shared::cta.b32 [place], 128;\n"
          "  tcgen05.relinquish_alloc_permit." +
          group +
          ".sync.aligned;\n"
          "allocated:\n  @%p3 mbarrier.init.shared.b64 [bar], 1;\n  mov.u32 %r6, tile;\n" +
          fmt::format("  mul.wide.u32 %rd4, %r22, {};\n", kCtaWords * 4) +
          "  add.u64 %rd4, %rd1, %rd4;\n  mov.u32 %r2, %r0;\n"
          "fill:\n  mul.wide.u32 %rd5, %r2, 4;\n  add.u64 %rd6, %rd4, %rd5;\n  ld.global.u32 %r3, [%rd6];\n"
          "  shl.b32 %r4, %r2, 2;\n  add.u32 %r4, %r6, %r4;\n  st.shared.u32 [%r4], %r3;\n  add.u32 %r2, %r2, 128;\n" +
          fmt::format("  setp.lt.u32 %p4, %r2, {};\n  @%p4 bra fill;\n  fence.proxy.async;\n  bar.sync 0;\n",
                      kTileWords) +
          "  ld.shared.u32 %r1, [place];\n  add.u32 %r5, %r1, %r21;\n  mul.wide.u32 %rd5, %r0, 256;\n" +
          fmt::format("  add.u64 %rd6, %rd4, {};\n  add.u64 %rd6, %rd6, %rd5;\n", kTileWords * 4) + fill +
          "  tcgen05.wait::st.sync.aligned;\n  tcgen05.fence::before_thread_sync;\n  bar.sync 0;\n" + meet +
          "  tcgen05.fence::after_thread_sync;\n  setp.ne.u32 %p5, %r0, %r0;\n" + before + multiply +
          (pair ? "  mov.u16 %rs1, 3;\n  @%p2 tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster"
                  ".multicast::cluster.b64 [bar], %rs1;\n"
                : "  @%p2 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];\n") +
          "w:\n  mbarrier.try_wait.parity.shared.b64 %p4, [bar], 0;\n  @!%p4 bra w;\n"
          "  tcgen05.fence::after_thread_sync;\n  mul.wide.u32 %rd8, %r22, 32768;\n  add.u64 %rd8, %rd0, %rd8;\n"
          "  add.u64 %rd8, %rd8, %rd5;\n" +
          give + "  bar.sync 0;\n" + meet +
          "  @%p1 bra gone;\n"
          "  tcgen05.dealloc." +
          group + ".sync.aligned.b32 %r1, 128;\ngone:\n",
      ".shared .align 1024 .b8 tile[9216];\n.shared .align 8 .b64 bar;\n.shared .align 4 .b32 place;\n");
  return for_target(text, "sm_100a", 32);
}

}  // namespace ptxkit::emulator
