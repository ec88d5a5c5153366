// The readers of readers_fuzz.cpp, selected by the first byte of the input.
#pragma once

#include <cstdint>
#include <string>

namespace ptxkit::testing {

enum class Reader : uint8_t { launch_file, evidence, baseline, crash, argument, tensor, image, cost };
inline constexpr size_t kReaderCount = 8;

// The kernel to which the debug buffer of Reader::crash belongs.
inline std::string crashed_kernel() {
  return ".version 8.0\n.target sm_90\n.address_size 64\n"
         ".visible .entry k(.param .u64 p) {\n.reg .b64 %rd<3>;\n.reg .b32 %r<3>;\n.reg .pred %p<2>;\n"
         "ld.param.u64 %rd1, [p];\nmov.u32 %r1, 0;\nL:\nst.global.u32 [%rd1], %r1;\nbar.sync 0;\n"
         "add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 9;\n@%p1 bra L;\nret;\n}\n";
}

}  // namespace ptxkit::testing
