// emulator-speed: thread instructions a second of processor time on the emulator, without checks and with all of them,
// over kernels of different kinds. The figures depend on the machine; the ratio hardly does.
#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "runtime/backend/emulator/emulator.hpp"

namespace ptxkit::tools {
namespace {

using namespace emulator;

constexpr std::string_view kHeader = ".version 8.0\n.target sm_75\n.address_size 64\n";

// Arithmetic only; loads and stores of global memory; shared memory, barriers and shuffles; lanes on different paths.
constexpr std::string_view kKernels = R"(
.visible .entry arithmetic(.param .u64 data)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, 0;
loop:
  mad.lo.u32 %r1, %r1, 1664525, 1013904223;
  shr.u32 %r3, %r1, 15;
  xor.b32 %r1, %r1, %r3;
  shf.l.wrap.b32 %r1, %r1, %r1, 5;
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, 4000;
  @%p1 bra loop;
  ret;
}
.visible .entry global_copy(.param .u64 data)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [data];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  mov.u32 %r2, 0;
loop:
  ld.global.u32 %r3, [%rd1];
  add.u32 %r3, %r3, 1;
  st.global.u32 [%rd1+4096], %r3;
  ld.global.u8 %r4, [%rd1+1];
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, 4000;
  @%p1 bra loop;
  ret;
}
.shared .align 4 .b32 tile[256];
.visible .entry shared_exchange(.param .u64 data)
{
  .reg .pred %p<2>;
  .reg .b32 %r<12>;
  mov.u32 %r1, %tid.x;
  shl.b32 %r2, %r1, 2;
  mov.u32 %r3, tile;
  add.u32 %r4, %r3, %r2;
  xor.b32 %r5, %r2, 128;
  add.u32 %r5, %r3, %r5;
  mov.u32 %r6, 0;
loop:
  st.shared.u32 [%r4], %r6;
  bar.sync 0;
  ld.shared.u32 %r7, [%r5];
  bar.sync 0;
  shfl.sync.bfly.b32 %r7, %r7, 1, 31, -1;
  add.u32 %r6, %r6, 1;
  setp.lt.u32 %p1, %r6, 2000;
  @%p1 bra loop;
  ret;
}
.visible .entry divergent(.param .u64 data)
{
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, 0;
loop:
  and.b32 %r3, %r1, 1;
  setp.eq.u32 %p1, %r3, 0;
  @%p1 bra even;
  mad.lo.u32 %r1, %r1, 3, 1;
  bra next;
even:
  shr.u32 %r1, %r1, 1;
next:
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p2, %r2, 2000;
  @%p2 bra loop;
  ret;
}
)";

double million_per_second(const Program& program, std::string_view entry, Address data, uint32_t checks) {
  const std::vector<Argument> arguments{Argument::of(data)};
  double best = 0;
  for (int round = 0; round < 3; ++round) {
    const std::clock_t start = std::clock();
    const auto outcome = launch(program, entry, {.grid = {4}, .block = {256}}, arguments, {.checks = checks});
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    if (!outcome || !outcome->ok()) {
      fmt::print(stderr, "emulator-speed: {}\n", outcome ? render(*outcome, "kernel.ptx") : outcome.error().message());
      return 0;
    }
    best = std::max(best, static_cast<double>(outcome->statistics.thread_instructions) / seconds / 1e6);
  }
  return best;
}

int measure() {
  Device device;
  const auto program = Program::load_text(device, std::string(kHeader) + std::string(kKernels), "kernel.ptx");
  const auto data = device.allocate(8192, "data");
  if (!program || !data || !device.fill(*data, std::byte{1}, 8192)) {
    fmt::print(stderr, "emulator-speed: {}\n", program ? "no memory" : program.error().message());
    return 1;
  }
  fmt::print("{:<18}{:>12}{:>12}{:>8}   million thread instructions a second of processor time\n", "kernel",
             "no checks", "all checks", "ratio");
  for (const EntryInfo& entry : program->entries()) {
    const double plain = million_per_second(*program, entry.name, *data, kCheckNone);
    const double checked = million_per_second(*program, entry.name, *data, kCheckAll);
    if (plain == 0 || checked == 0) return 1;
    fmt::print("{:<18}{:>12.0f}{:>12.0f}{:>8.1f}\n", entry.name, plain, checked, plain / checked);
  }
  return 0;
}

}  // namespace
}  // namespace ptxkit::tools

int main() { return ptxkit::tools::measure(); }
